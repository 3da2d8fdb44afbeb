//! The file of a table: where its parts lie. Shared with the build script.

/// Slots of the hash index over the words; a power of two, twice as many as there are words.
pub(crate) const SLOTS: usize = 1 << 17;

const HEADER_BYTES: usize = 64;

/// Where the parts of a table lie. All numbers are little endian.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) rows: usize,
    pub(crate) dimensions: usize,
    scales: usize,
    first_row: usize,
    /// One length byte and UTF-8 for each word.
    #[allow(dead_code, reason = "only the build script walks the words")]
    pub(crate) words: usize,
}

impl Layout {
    /// Reads the header; `None` when this is no table of four bits a value that fits its bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| {
            u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)
                .try_into()
                .ok()
        };
        if bytes.get(..4)? != b"SEMB" || u16_at(4)? != 1 || u16_at(6)? != 4 {
            return None;
        }
        let rows: usize = u32_at(8)?;
        let dimensions = usize::from(u16_at(16)?);
        let (metadata, vocabulary): (usize, usize) = (u32_at(20)?, u32_at(24)?);
        let scales = (HEADER_BYTES + metadata).next_multiple_of(64);
        let first_row = (scales + 4 * rows).next_multiple_of(64);
        let words = first_row + rows * dimensions / 2;
        let fits =
            words + vocabulary == bytes.len() && rows < usize::from(u16::MAX) && rows < SLOTS;
        fits.then_some(Self {
            rows,
            dimensions,
            scales,
            first_row,
            words,
        })
    }

    /// What the values of a row are multiplied with.
    pub(crate) fn scale(&self, bytes: &[u8], row: usize) -> f32 {
        f32_at(&bytes[self.scales..], row)
    }

    /// Byte k holds dimension k in its low half and dimension k + d/2 in its high half.
    pub(crate) fn row<'a>(&self, bytes: &'a [u8], row: usize) -> &'a [u8] {
        let width = self.dimensions / 2;
        &bytes[self.first_row + row * width..][..width]
    }
}

/// Number `index` of a list of numbers.
pub(crate) fn f32_at(bytes: &[u8], index: usize) -> f32 {
    let b = &bytes[4 * index..4 * index + 4];
    f32::from_le_bytes([b[0], b[1], b[2], b[3]])
}

/// The two values of a byte, before scaling: -8 to 7.
pub(crate) fn nibbles(byte: u8) -> (i16, i16) {
    (i16::from(byte & 15) - 8, i16::from(byte >> 4) - 8)
}

/// Where the search for a word begins (FNV-1a, folded).
pub(crate) fn slot(word: &[u8]) -> usize {
    let hash = word.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let folded = hash ^ (hash >> 32);
    usize::try_from(folded & (SLOTS as u64 - 1)).unwrap_or(0)
}

//! Words and lines, from the positions of letters.

use unicode_normalization::UnicodeNormalization;

/// A gap between letters that is wider than this share of their size is a space.
const SPACE: f32 = 0.2;
/// A step down by more than this share of the size begins another line …
const LINE: f32 = 0.5;
/// … and by more than this another paragraph.
const PARAGRAPH: f32 = 1.9;

/// The text so far, and the position of the next letter.
#[derive(Default)]
pub(super) struct Layout {
    text: String,
    /// The size of the font.
    pub(super) size: f32,
    /// How far below a line the next one begins.
    pub(super) leading: f32,
    /// Where the current line begins, as a matrix.
    line: [f32; 6],
    /// How far from there the next letter stands, along the line.
    x: f32,
    /// Where the last letter ended, on the page, and its size there.
    last: Option<(f32, f32, f32)>,
}

impl Layout {
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn begin(&mut self) {
        self.place([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    pub(super) fn place(&mut self, matrix: [f32; 6]) {
        self.line = matrix;
        self.x = 0.0;
    }

    pub(super) fn move_line(&mut self, x: f32, y: f32) {
        let [a, b, c, d, e, f] = self.line;
        self.place([a, b, c, d, x * a + y * c + e, x * b + y * d + f]);
    }

    pub(super) fn next_line(&mut self) {
        self.move_line(0.0, -self.leading);
    }

    /// Moves what follows to the left, by thousandths of the size.
    pub(super) fn shift(&mut self, by: f32) {
        self.x -= by / 1_000.0 * self.size;
    }

    /// Where the next letter stands on the page, and how large it is there.
    fn here(&self) -> (f32, f32, f32) {
        let [a, b, _, d, e, f] = self.line;
        let scale = if d == 0.0 {
            a.abs().max(b.abs())
        } else {
            d.abs()
        };
        let size = (self.size * scale).abs();
        (e + self.x * a, f + self.x * b, size.max(0.01))
    }

    /// Adds letters of this width, in thousandths of the size.
    pub(super) fn show(&mut self, text: &str, width: f32) {
        let (x, y, size) = self.here();
        if let Some((end, before, size_before)) = self.last {
            let larger = size.max(size_before);
            let down = (before - y).abs() / larger;
            let gap = (x - end) / larger;
            if down > PARAGRAPH {
                self.part("\n\n");
            } else if down > LINE || gap < -2.0 {
                self.part("\n");
            } else if gap > SPACE {
                self.part(" ");
            }
        }
        for it in text.chars().filter(|c| !c.is_control() || *c == '\t') {
            match it {
                '\u{a0}' => self.text.push(' '),
                // One glyph for several letters.
                '\u{fb00}'..='\u{fb06}' => self.text.extend(std::iter::once(it).nfkc()),
                _ => self.text.push(it),
            }
        }
        self.x += width / 1_000.0 * self.size;
        let (x, y, size) = self.here();
        self.last = Some((x, y, size));
    }

    fn part(&mut self, by: &str) {
        let is_parted = self.text.ends_with(by.chars().next().unwrap_or(' '));
        if !self.text.is_empty() && !is_parted {
            self.text.push_str(by);
        }
    }

    pub(super) fn end_page(&mut self) {
        self.part("\n\n");
        self.last = None;
    }

    /// The text, without spaces at the ends of lines.
    pub(super) fn into_text(self) -> String {
        let lines = self.text.lines().map(|it| it.trim_end());
        let text = lines.collect::<Vec<_>>().join("\n");
        text.trim().to_owned()
    }
}

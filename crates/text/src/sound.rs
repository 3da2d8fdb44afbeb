//! What a name sounds like.
//!
//! The key is the first four codes of Double Metaphone (Lawrence Philips, 2000), of the first word that is a
//! name. A few names of Irish spelling are heard otherwise than any rule of English has it, so they are
//! spelled as they sound first.

use crate::fold;

/// A key has so many codes, at most.
const CODES_MAX: usize = 4;

/// Spelled, and heard.
const HEARD: &[(&str, &str)] = &[
    ("aisling", "ashling"),
    ("aoife", "eefa"),
    ("caoimhe", "keeva"),
    ("ciaran", "kieran"),
    ("eoin", "owen"),
    ("grainne", "gronya"),
    ("niamh", "neev"),
    ("oisin", "osheen"),
    ("padraig", "pawrig"),
    ("roisin", "rosheen"),
    ("saoirse", "seersha"),
    ("sean", "shawn"),
    ("sinead", "shinade"),
    ("siobhan", "shivon"),
    ("tadhg", "tige"),
];

/// How the first word of a name sounds that is none of `stopwords`; empty when nothing is heard.
#[must_use]
pub fn phonetic_key(name: &str, stopwords: &[String]) -> String {
    let name = fold::name(name);
    let words = || {
        name.split(' ')
            .filter(|it| it.contains(char::is_alphanumeric))
    };
    let is_name = |it: &&str| !stopwords.iter().any(|stop| stop == it);
    let word = words().find(is_name);
    let word = word.or_else(|| words().next()).unwrap_or_default();
    let heard = HEARD.iter().find(|it| it.0 == word);
    metaphone(heard.map_or(word, |it| it.1))
}

struct Word {
    letters: Vec<char>,
    is_slavic: bool,
    key: String,
}

fn metaphone(word: &str) -> String {
    let letters: Vec<char> = word
        .to_uppercase()
        .chars()
        .filter(char::is_ascii_alphabetic)
        .collect();
    let upper: String = letters.iter().collect();
    let is_slavic = ["W", "K", "CZ", "WITZ"].iter().any(|it| upper.contains(it));
    let mut it = Word {
        letters,
        is_slavic,
        key: String::new(),
    };
    let mut at = usize::from(it.is_at(0, &["GN", "KN", "PN", "WR", "PS"]));
    while at < it.letters.len() && it.key.len() < CODES_MAX {
        at += it.step(at);
    }
    it.key.truncate(CODES_MAX);
    it.key
}

impl Word {
    /// Whether one of these begins at `at`; nothing begins before the word.
    fn is_at(&self, at: isize, any: &[&str]) -> bool {
        let Ok(at) = usize::try_from(at) else {
            return false;
        };
        let rest = self.letters.get(at..).unwrap_or_default();
        let begins =
            |it: &&str| it.len() <= rest.len() && it.chars().zip(rest).all(|(a, b)| a == *b);
        any.iter().any(begins)
    }

    fn is_vowel(&self, at: isize) -> bool {
        self.is_at(at, &["A", "E", "I", "O", "U", "Y"])
    }

    fn is_germanic(&self) -> bool {
        self.is_at(0, &["VAN", "VON", "SCH"])
    }

    fn is_last(&self, at: isize) -> bool {
        usize::try_from(at).is_ok_and(|at| at + 1 == self.letters.len())
    }

    /// Adds codes; answers how many letters they stand for.
    fn add(&mut self, codes: &str, n_letters: usize) -> usize {
        self.key.push_str(codes);
        n_letters
    }

    /// Adds codes for a letter, or for the letter written twice.
    fn add_twice(&mut self, at: isize, again: &[&str], codes: &str) -> usize {
        let n_letters = 1 + usize::from(self.is_at(at + 1, again));
        self.add(codes, n_letters)
    }

    fn step(&mut self, at: usize) -> usize {
        let letter = self.letters[at];
        let Ok(at) = isize::try_from(at) else {
            return 1;
        };
        match letter {
            'A' | 'E' | 'I' | 'O' | 'U' | 'Y' => self.add(if at == 0 { "A" } else { "" }, 1),
            'B' => self.add_twice(at, &["B"], "P"),
            'C' => self.of_c(at),
            'D' => self.of_d(at),
            'F' => self.add_twice(at, &["F"], "F"),
            'G' => self.of_g(at),
            'H' => {
                let is_heard = (at == 0 || self.is_vowel(at - 1)) && self.is_vowel(at + 1);
                if is_heard { self.add("H", 2) } else { 1 }
            }
            'J' => self.of_j(at),
            'K' => self.add_twice(at, &["K"], "K"),
            'L' => self.add_twice(at, &["L"], "L"),
            'M' => {
                let is_mute_b = self.is_at(at - 1, &["UMB"])
                    && (self.is_last(at + 1) || self.is_at(at + 2, &["ER"]));
                let n_letters = 1 + usize::from(is_mute_b || self.is_at(at + 1, &["M"]));
                self.add("M", n_letters)
            }
            'N' => self.add_twice(at, &["N"], "N"),
            'P' if self.is_at(at + 1, &["H"]) => self.add("F", 2),
            'P' => self.add_twice(at, &["P", "B"], "P"),
            'Q' => self.add_twice(at, &["Q"], "K"),
            'R' => {
                let is_mute = self.is_last(at)
                    && !self.is_slavic
                    && self.is_at(at - 2, &["IE"])
                    && !self.is_at(at - 4, &["ME", "MA"]);
                self.add_twice(at, &["R"], if is_mute { "" } else { "R" })
            }
            'S' => self.of_s(at),
            'T' => self.of_t(at),
            'V' => self.add_twice(at, &["V"], "F"),
            'W' => self.of_w(at),
            'X' if at == 0 => self.add("S", 1),
            'X' => {
                let is_mute = self.is_last(at)
                    && (self.is_at(at - 3, &["IAU", "EAU"]) || self.is_at(at - 2, &["AU", "OU"]));
                self.add_twice(at, &["C", "X"], if is_mute { "" } else { "KS" })
            }
            'Z' if self.is_at(at + 1, &["H"]) => self.add("J", 2),
            'Z' => self.add_twice(at, &["Z"], "S"),
            _ => 1,
        }
    }

    fn of_c(&mut self, at: isize) -> usize {
        let is_ach = at > 1
            && !self.is_vowel(at - 2)
            && self.is_at(at - 1, &["ACH"])
            && !self.is_at(at + 2, &["I"])
            && (!self.is_at(at + 2, &["E"]) || self.is_at(at - 2, &["BACHER", "MACHER"]));
        if is_ach || self.is_at(at, &["CHIA"]) {
            return self.add("K", 2);
        }
        if at == 0 && self.is_at(0, &["CAESAR"]) {
            return self.add("S", 2);
        }
        if self.is_at(at, &["CH"]) {
            return self.of_ch(at);
        }
        if self.is_at(at, &["CZ"]) && !self.is_at(at - 2, &["WICZ"]) {
            return self.add("S", 2);
        }
        if self.is_at(at + 1, &["CIA"]) {
            return self.add("X", 3);
        }
        if self.is_at(at, &["CC"]) && !(at == 1 && self.is_at(0, &["M"])) {
            if !self.is_at(at + 2, &["I", "E", "H"]) || self.is_at(at + 2, &["HU"]) {
                return self.add("K", 2);
            }
            let is_hard =
                at == 1 && self.is_at(0, &["A"]) || self.is_at(at - 1, &["UCCEE", "UCCES"]);
            return self.add(if is_hard { "KS" } else { "X" }, 3);
        }
        if self.is_at(at, &["CK", "CG", "CQ"]) {
            return self.add("K", 2);
        }
        if self.is_at(at, &["CI", "CE", "CY"]) {
            return self.add("S", 2);
        }
        let is_double = self.is_at(at + 1, &["C", "K", "Q"]) && !self.is_at(at + 1, &["CE", "CI"]);
        self.add("K", 1 + usize::from(is_double))
    }

    fn of_ch(&mut self, at: isize) -> usize {
        let is_greek = at == 0
            && self.is_at(1, &["HARAC", "HARIS", "HOR", "HYM", "HIA", "HEM"])
            && !self.is_at(0, &["CHORE"]);
        let is_hard = at > 0 && self.is_at(at, &["CHAE"])
            || is_greek
            || self.is_germanic()
            || self.is_at(at - 2, &["ORCHES", "ARCHIT", "ORCHID"])
            || self.is_at(at + 2, &["T", "S"])
            || (at == 0 || self.is_at(at - 1, &["A", "O", "U", "E"]))
                && (self.is_last(at + 1)
                    || self.is_at(at + 2, &["L", "R", "N", "M", "B", "H", "F", "V", "W"]))
            || at > 0 && self.is_at(0, &["MC"]);
        self.add(if is_hard { "K" } else { "X" }, 2)
    }

    fn of_d(&mut self, at: isize) -> usize {
        if self.is_at(at, &["DG"]) {
            return if self.is_at(at + 2, &["I", "E", "Y"]) {
                self.add("J", 3)
            } else {
                self.add("TK", 2)
            };
        }
        self.add_twice(at, &["T", "D"], "T")
    }

    fn of_g(&mut self, at: isize) -> usize {
        if self.is_at(at + 1, &["H"]) {
            return self.of_gh(at);
        }
        if self.is_at(at + 1, &["N"]) {
            let is_heard =
                self.is_slavic || at == 1 && self.is_vowel(0) || self.is_at(at + 2, &["EY"]);
            return self.add(if is_heard { "KN" } else { "N" }, 2);
        }
        if self.is_at(at + 1, &["LI"]) && !self.is_slavic {
            return self.add("KL", 2);
        }
        const HARD: &[&str] = &[
            "Y", "ES", "EP", "EB", "EL", "EY", "IB", "IL", "IN", "IE", "EI", "ER",
        ];
        let is_hard = at == 0 && self.is_at(1, HARD)
            || self.is_at(at + 1, &["ER", "Y"])
                && !self.is_at(0, &["DANGER", "RANGER", "MANGER"])
                && !self.is_at(at - 1, &["E", "I", "RGY", "OGY"]);
        if is_hard {
            return self.add("K", 2);
        }
        if self.is_at(at + 1, &["E", "I", "Y"]) || self.is_at(at - 1, &["AGGI", "OGGI"]) {
            let is_hard = self.is_germanic() || self.is_at(at + 1, &["ET"]);
            return self.add(if is_hard { "K" } else { "J" }, 2);
        }
        self.add_twice(at, &["G"], "K")
    }

    fn of_gh(&mut self, at: isize) -> usize {
        if at > 0 && !self.is_vowel(at - 1) {
            return self.add("K", 2);
        }
        if at == 0 {
            let codes = if self.is_at(2, &["I"]) { "J" } else { "K" };
            return self.add(codes, 2);
        }
        let is_mute = self.is_at(at - 2, &["B", "H", "D"])
            || self.is_at(at - 3, &["B", "H", "D"])
            || self.is_at(at - 4, &["B", "H"]);
        if is_mute {
            return 2;
        }
        if self.is_at(at - 1, &["U"]) && self.is_at(at - 3, &["C", "G", "L", "R", "T"]) {
            return self.add("F", 2);
        }
        self.add(if self.is_at(at - 1, &["I"]) { "" } else { "K" }, 2)
    }

    fn of_j(&mut self, at: isize) -> usize {
        let is_heard = at == 0
            || self.is_last(at)
            || self.is_vowel(at - 1) && !self.is_slavic && self.is_at(at + 1, &["A", "O"])
            || !self.is_at(at + 1, &["L", "T", "K", "S", "N", "M", "B", "Z"])
                && !self.is_at(at - 1, &["S", "K", "L"]);
        let codes = match (self.is_at(at, &["JOSE"]), is_heard) {
            (true, _) if at == 0 && self.letters.len() == 4 => "H",
            (_, true) | (true, _) => "J",
            _ => "",
        };
        self.add_twice(at, &["J"], codes)
    }

    fn of_s(&mut self, at: isize) -> usize {
        if self.is_at(at - 1, &["ISL", "YSL"]) {
            return 1;
        }
        if at == 0 && self.is_at(0, &["SUGAR"]) {
            return self.add("X", 1);
        }
        if self.is_at(at, &["SH"]) {
            let is_compound = self.is_at(at + 1, &["HEIM", "HOEK", "HOLM", "HOLZ"]);
            return self.add(if is_compound { "S" } else { "X" }, 2);
        }
        if self.is_at(at, &["SIO", "SIA"]) {
            return self.add("S", 3);
        }
        if self.is_at(at, &["SC"]) {
            return self.of_sc(at);
        }
        let is_mute = self.is_last(at) && self.is_at(at - 2, &["AI", "OI"]);
        self.add_twice(at, &["S", "Z"], if is_mute { "" } else { "S" })
    }

    fn of_sc(&mut self, at: isize) -> usize {
        if self.is_at(at + 2, &["H"]) {
            let is_dutch = self.is_at(at + 3, &["OO", "UY", "ED", "EM"]);
            return self.add(if is_dutch { "SK" } else { "X" }, 3);
        }
        let is_soft = self.is_at(at + 2, &["I", "E", "Y"]);
        self.add(if is_soft { "S" } else { "SK" }, 3)
    }

    fn of_t(&mut self, at: isize) -> usize {
        if self.is_at(at, &["TION", "TIA", "TCH"]) {
            return self.add("X", 3);
        }
        if self.is_at(at, &["TH", "TTH"]) {
            let is_hard = self.is_at(at + 2, &["OM", "AM"]) || self.is_germanic();
            return self.add(if is_hard { "T" } else { "0" }, 2);
        }
        self.add_twice(at, &["T", "D"], "T")
    }

    fn of_w(&mut self, at: isize) -> usize {
        if self.is_at(at, &["WR"]) {
            return self.add("R", 2);
        }
        if at == 0 && (self.is_vowel(1) || self.is_at(0, &["WH"])) {
            return self.add("A", 1);
        }
        if self.is_at(at, &["WICZ", "WITZ"]) {
            return self.add("TS", 4);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_sound_alike_have_one_key() {
        for (a, b) in [
            ("Sean", "Shawn"),
            ("Catherine", "Kathryn"),
            ("Philip", "Filip"),
            ("Knight", "Nite"),
            ("Siobhán", "Shivon"),
            ("Steven", "Stephen"),
            ("Wright", "Rite"),
        ] {
            let key = |it| phonetic_key(it, &[]);
            assert_eq!(key(a), key(b), "{a} {b}");
        }
    }

    #[test]
    fn keys_are_those_of_the_published_algorithm() {
        for (word, expected) in [
            ("Thompson", "TMPS"),
            ("Thumb", "0M"),
            ("Schmidt", "XMT"),
            ("Michael", "MKL"),
            ("Zhao", "J"),
            ("Tsjaikowski", "TSKS"),
            ("Jankelowicz", "JNKL"),
            ("Caesar", "SSR"),
            ("Bacchus", "PKS"),
            ("Edge", "AJ"),
            ("Edgar", "ATKR"),
            ("Hugh", "H"),
            ("Laugh", "LF"),
            ("Dumb", "TM"),
            ("Campbell", "KMPL"),
            ("", ""),
            ("日本", ""),
            ("123", ""),
        ] {
            assert_eq!(phonetic_key(word, &[]), expected, "{word}");
        }
    }
}

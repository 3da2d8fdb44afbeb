//! Secrets, replaced before anything is kept.
//!
//! Three ways to know one: its own form (`ghp_…`, a private key, a JWT), the words beside it (`password=…`,
//! `curl -u admin:…`, "the password is …"), and its looks: a long word whose letters change between small, large and
//! digits as only chance does. Rather one word too many is replaced than a secret is kept.

use crate::secret_words::{FORMS, NAMES, OPTIONS};

/// What stands in place of a secret.
pub const MARK: &str = "[redacted]";

/// The largest number of words between a name and the word `is` before the secret.
const WORDS_TO_IS: usize = 8;

const OPEN: &str = "<private>";
const CLOSE: &str = "</private>";

/// Private parts in private parts are taken out so often.
const NESTED_MAX: usize = 8;

/// No name of a secret and no first line of a key is longer, in bytes. What is looked for is bounded by it, so that a
/// text without spaces takes no longer than another.
const NAME_BYTES_MAX: usize = 128;

/// A text without the parts that its author marked as private; `None` if it has none.
pub fn without_private(text: &str) -> Option<String> {
    let mut kept = without_outer(text)?;
    // What is left may be put together to another one.
    for _ in 0..NESTED_MAX {
        let Some(less) = without_outer(&kept) else {
            return Some(kept);
        };
        kept = less;
    }
    // Nobody nests them so deep by hand: nothing after the first one is kept.
    let open = kept.to_ascii_lowercase().find(OPEN);
    kept.truncate(open.unwrap_or(kept.len()));
    Some(kept)
}

fn without_outer(text: &str) -> Option<String> {
    // Only ASCII letters change, so that places stay the same.
    let small = text.to_ascii_lowercase();
    if !small.contains(OPEN) {
        return None;
    }
    let (mut kept, mut at) = (String::new(), 0);
    while let Some(start) = small[at..].find(OPEN) {
        kept.push_str(&text[at..at + start]);
        let inner = at + start + OPEN.len();
        match small[inner..].find(CLOSE) {
            Some(end) => at = inner + end + CLOSE.len(),
            None => {
                at = text.len();
                break;
            }
        }
    }
    kept.push_str(&text[at..]);
    Some(kept)
}

/// A text in which every secret that can be recognized is replaced.
pub fn redacted(text: &str) -> String {
    let text = without_keys(text);
    let text = without_url_passwords(&text);
    let words = Words::of(&text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (n, word) in words.0.iter().enumerate() {
        out.push_str(&text[at..word.start]);
        out.push_str(&words.safe(n));
        at = word.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Replaces private keys in PEM form, to their end or that of the text.
fn without_keys(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("-----BEGIN ") {
        let end = rest.floor_char_boundary(start + NAME_BYTES_MAX);
        let line = &rest[start..end];
        let line_end = line.find("-----\n").or(line.find("-----\\n"));
        let header = &line[..line_end.unwrap_or(line.len())];
        if !header.contains("PRIVATE KEY") && !header.contains("SECRET") {
            let skip = start + "-----BEGIN ".len();
            out.push_str(&rest[..skip]);
            rest = &rest[skip..];
            continue;
        }
        out.push_str(&rest[..start]);
        out.push_str(MARK);
        let end = rest[start..].find("-----END ");
        let Some(end) = end.map(|it| start + it + "-----END ".len()) else {
            return out;
        };
        let close = rest[end..].find("-----");
        rest = &rest[close.map_or(rest.len(), |it| end + it + "-----".len())..];
    }
    out.push_str(rest);
    out
}

/// Replaces the password in `scheme://user:password@host`, and the path of addresses that are secrets as a whole.
fn without_url_passwords(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("://") {
        let start = at + "://".len();
        let end = rest[start..]
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>'));
        let end = end.map_or(rest.len(), |it| start + it);
        let address = &rest[start..end];
        let is_hook = [
            "hooks.slack.com/",
            "discord.com/api/webhooks/",
            "outlook.office.com/webhook/",
        ]
        .iter()
        .any(|it| address.starts_with(it));
        if is_hook {
            let scheme = rest[..at].rfind(|c: char| !c.is_ascii_alphanumeric());
            out.push_str(&rest[..scheme.map_or(0, |it| it + 1)]);
            out.push_str(MARK);
            rest = &rest[end..];
            continue;
        }
        out.push_str(&rest[..start]);
        if let Some((user, host)) = address.rsplit_once('@')
            && let Some((name, _)) = user.split_once(':')
        {
            out.push_str(&format!("{name}:{MARK}@{host}"));
        } else {
            out.push_str(address);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// A word between spaces.
struct Word<'a> {
    start: usize,
    end: usize,
    text: &'a str,
    small: String,
    /// Whether a sentence or a line ends after it.
    ends: bool,
}

struct Words<'a>(Vec<Word<'a>>);

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let mut words: Vec<Word<'a>> = Vec::new();
        let mut start = None;
        for (at, c) in text.char_indices().chain([(text.len(), '\n')]) {
            match (start, c.is_whitespace()) {
                (None, false) => start = Some(at),
                (Some(begin), true) => {
                    let word = &text[begin..at];
                    words.push(Word {
                        start: begin,
                        end: at,
                        text: word,
                        small: word.to_lowercase(),
                        ends: c == '\n' || word.ends_with(['.', ';', '?']),
                    });
                    start = None;
                }
                _ => {}
            }
        }
        Self(words)
    }

    /// A word, with the secrets in it replaced.
    fn safe(&self, n: usize) -> String {
        let word = &self.0[n];
        if word.text == MARK {
            return MARK.to_owned();
        }
        if self.is_after_option(n) || self.is_after_name(n) {
            return without_value(word.text);
        }
        if let Some((name, value)) = assigned(word.text)
            && is_name(name)
            && !value.is_empty()
        {
            let kept = word.text.len() - value.len();
            return format!("{}{}", &word.text[..kept], without_value(value));
        }
        // `-u admin:secret`
        let before = n.checked_sub(1).map(|it| self.0[it].small.as_str());
        if matches!(before, Some("-u" | "--user"))
            && let Some((user, _)) = word.text.split_once(':')
        {
            return format!("{user}:{MARK}");
        }
        pieces(word.text)
    }

    fn is_after_option(&self, n: usize) -> bool {
        let before = n.checked_sub(1).map(|it| &self.0[it]);
        before.is_some_and(|it| OPTIONS.contains(&it.small.as_str()) && !it.text.is_empty())
            && self.looks_given(n)
    }

    /// `-p` is also the option for a port or a package: a plain word or a short number is none.
    fn looks_given(&self, n: usize) -> bool {
        let option = self.0[n - 1].small.as_str();
        let word = bare(self.0[n].text);
        !matches!(option, "-p" | "--key" | "--pin") || is_odd(word)
    }

    /// After `password:`, `Bearer`, or "the password of … is".
    fn is_after_name(&self, n: usize) -> bool {
        let Some(before) = n.checked_sub(1).map(|it| &self.0[it]) else {
            return false;
        };
        let word = bare(self.0[n].text);
        if word.is_empty() {
            return false;
        }
        let name = before
            .small
            .trim_start_matches(['"', '\'', '`', '(', '{', '-']);
        if matches!(name, "=" | ":") && n >= 2 {
            return is_name(bare(&self.0[n - 2].small));
        }
        if let Some(name) = name.strip_suffix([':', '=']) {
            let name = name.trim_end_matches(['"', '\'', '`']);
            return is_name(name) && (is_odd(word) || !is_prose(self.0[n].text, name));
        }
        if matches!(name, "bearer" | "basic") {
            return is_odd(word);
        }
        if !matches!(
            name,
            "is" | "ist" | "are" | "lautet" | "was" | "war" | "to" | "auf"
        ) || !is_odd(word)
        {
            return false;
        }
        let words = self.0[..n - 1].iter().rev().take(WORDS_TO_IS);
        let mut words = words.take_while(|it| !it.ends);
        words.any(|it| is_name(bare(&it.small)))
    }
}

/// A word without the signs around it.
fn bare(word: &str) -> &str {
    word.trim_matches([
        '"', '\'', '`', ',', ';', '.', '(', ')', '{', '}', '[', ']', ':',
    ])
}

/// `name=value`, `name:value`, `"name":"value"`, `--name=value`, also at the end of a longer word such as an address.
fn assigned(word: &str) -> Option<(&str, &str)> {
    for (at, sign) in word.char_indices().filter(|it| matches!(it.1, '=' | ':')) {
        let name = &word[word.ceil_char_boundary(at.saturating_sub(NAME_BYTES_MAX))..at];
        let name = name.rsplit(['?', '&', '{', ',', ';', '(', '/']).next()?;
        let name = name.trim_matches(['"', '\'', '`', '-']);
        if is_name(name) && !word[at..].starts_with("://") {
            return Some((name, &word[at + sign.len_utf8()..]));
        }
    }
    None
}

/// `DB_PASSWORD`, `apiKey` and `x-api-key` name secrets, `tokens` and `keyboard` do not.
fn is_name(word: &str) -> bool {
    let small = word.to_lowercase();
    let small = small.trim_matches(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    if NAMES.contains(&small) {
        return true;
    }
    let parts: Vec<&str> = small.split(['_', '-', '.']).collect();
    let last = parts.last().copied().unwrap_or_default();
    let strong = [
        "password",
        "passwd",
        "passphrase",
        "passwort",
        "pwd",
        "secret",
        "token",
        "apikey",
        "key",
        "pass",
        "pat",
    ];
    (parts.len() > 1 && strong.contains(&last))
        || ["password", "passwort", "apikey", "secret", "pgpassword"]
            .iter()
            .any(|it| small.ends_with(it) && small.len() < 40)
}

/// Whether what stands after `name:` is a sentence and no value: `key: the first column`, `pass: true`.
fn is_prose(word: &str, name: &str) -> bool {
    let strong = [
        "password",
        "passwort",
        "passwd",
        "pwd",
        "pw",
        "passphrase",
        "secret",
        "token",
        "api_key",
        "apikey",
        "api-key",
    ];
    let plain = word
        .chars()
        .all(|c| c.is_alphabetic() || matches!(c, ',' | '.' | '\'' | '"'));
    plain && (!strong.contains(&name) || word.chars().count() < 6)
}

/// Whether a word is none of a language: it has a digit or a sign inside, or changes between small and large letters.
fn is_odd(word: &str) -> bool {
    let word = bare(word);
    if word.chars().count() < 6 {
        return false;
    }
    let has_digit = word.chars().any(|c| c.is_ascii_digit());
    let has_sign = word
        .chars()
        .any(|c| !c.is_alphanumeric() && !matches!(c, '-' | '\'' | '.' | '/' | '_'));
    let is_number = word
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | ':'));
    let is_long = word.chars().count() >= 24 && !word.contains('/');
    !is_number && (has_digit || has_sign || changes(word) >= 3 || is_long)
}

/// Everything but quotation marks and closing signs is replaced.
fn without_value(word: &str) -> String {
    let value = word.trim_start_matches(['"', '\'', '`', '(', '[', '{']);
    let start = word.len() - value.len();
    let inner = value.trim_end_matches(['"', '\'', '`', ',', ';', ')', ']', '}', '.']);
    let end = start + inner.len();
    if inner.is_empty() {
        return word.to_owned();
    }
    // In an address other parameters follow.
    let more = inner.find('&').map_or(end, |it| start + it);
    format!("{}{MARK}{}", &word[..start], &word[more..])
}

/// Replaces tokens in a word by their form and their looks.
fn pieces(word: &str) -> String {
    let is_token = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '=' | '~' | ':')
    };
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_token(c)).unwrap_or(rest.len());
        if end == 0 {
            let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        out.push_str(&token(&rest[..end]));
        rest = &rest[end..];
    }
    out
}

/// One token: as it is, or replaced from where its secret begins.
fn token(word: &str) -> String {
    let is_start = |at: usize| at == 0 || !word.as_bytes()[at - 1].is_ascii_alphanumeric();
    for (form, least) in FORMS {
        let found = word.match_indices(form).find(|it| is_start(it.0));
        if let Some((at, _)) = found {
            let rest = &word[at + form.len()..];
            let n = rest.chars().take_while(|c| is_of_token(*c)).count();
            if n >= *least {
                return format!("{}{MARK}", &word[..at]);
            }
        }
    }
    if let Some(at) = word.find("eyJ")
        && word[at..].matches('.').count() >= 1
        && word.len() - at > 30
    {
        return format!("{}{MARK}", &word[..at]);
    }
    // A name and its value in one word: `build=4f0c…`.
    let value = word.rsplit_once('=').filter(|it| !it.1.is_empty());
    let (name, value) = value.map_or(("", word), |(name, value)| (&word[..=name.len()], value));
    if is_random(value) {
        return format!("{name}{MARK}");
    }
    word.to_owned()
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '=')
}

/// Whether a word looks as if it was made by chance.
fn is_random(word: &str) -> bool {
    let word = word.trim_matches(['.', ':', '-', '_', '/']);
    // A path or an address: each of its parts is looked at.
    let is_path = word.contains('/') && word.split('/').any(is_plain);
    if is_path || word.contains(':') {
        return word.split(['/', ':']).any(is_random_part);
    }
    is_random_part(word)
}

/// A part of a path that a person would write.
fn is_plain(part: &str) -> bool {
    let letters = part.chars().filter(char::is_ascii_alphabetic).count();
    part.is_empty() || changes(part) <= 2 && letters * 2 >= part.len()
}

fn is_random_part(word: &str) -> bool {
    let n = word.chars().count();
    if n < 16 {
        return false;
    }
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let is_hex = word.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex {
        // A hash of 40 digits names a commit, and is replaced too: nobody remembers commits by it.
        return n >= 32 && digits > 4;
    }
    let is_uuid = n == 36 && word.matches('-').count() == 4;
    if is_uuid {
        return false;
    }
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    // Of letters that chance chose, about every second one is followed by one of another class.
    digits > 0 && letters > 0 && n >= 20 && changes(word) * 10 >= n * 3
}

/// How often a word changes between small letters, large letters and digits. A large letter before small ones begins
/// a word, as in `CamelCase`, and is one change.
fn changes(word: &str) -> usize {
    let class = |c: char| match c {
        'a'..='z' => 1,
        'A'..='Z' => 2,
        '0'..='9' => 3,
        _ => 0,
    };
    let classes: Vec<u8> = word.chars().map(class).filter(|it| *it > 0).collect();
    let turns = classes.windows(2).filter(|it| it[0] != it[1]).count();
    let begins = classes
        .windows(2)
        .filter(|it| it[0] == 2 && it[1] == 1)
        .count();
    turns - begins.min(turns) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_private_is_gone() {
        let text = "a <private>one</private> b <PRIVATE>two\nthree</Private> c";
        assert_eq!(without_private(text).as_deref(), Some("a  b  c"));
        assert_eq!(
            without_private("a <private>to the end").as_deref(),
            Some("a ")
        );
        assert_eq!(without_private("nothing"), None);
        let nested = "a <pri<private>x</private>vate>y</private> b";
        assert_eq!(without_private(nested).as_deref(), Some("a  b"));
        let mut open = "<private>".to_owned();
        for _ in 0..20 {
            open = format!("<pri{open}.</private>vate>");
        }
        let kept = without_private(&format!("a {open}x</private> b")).unwrap_or_default();
        assert!(!kept.contains("<private>") && !kept.contains('x'), "{kept}");
    }

    #[test]
    fn plain_words_stay() {
        for text in [
            "We decided to keep the token in the vault.",
            "The password is wrong, the key is missing and the secret is out.",
            "kubectl --context stg-euc2 apply -f deploy/api.yaml",
            "DJANGO_SETTINGS_MODULE=billing.settings.dev python manage.py makemigrations billing",
            "billing/migrations/0042_customer_vat_id.py and tests/test_retry.py::test_backoff",
            "Always run `cargo test --test two_hundred_callers_all_come_back -p relay` first",
            "PRODUCT_BUNDLE_IDENTIFIER = com.trail.app.widget and /etc/gateway/gateway.toml",
            "the primary key is the first column; key: the name",
            "https://github.com/acme/shop/pull/1234#issuecomment-998877",
            "/home/mara/src/relay/src/pool.rs:14:22 panicked",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn secrets_are_replaced_and_what_is_around_them_stays() {
        let token = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
        for (text, expected) in [
            (
                format!("use {token} for CI"),
                "use [redacted] for CI".to_owned(),
            ),
            (
                "DB_PASSWORD=hunter2 make".to_owned(),
                "DB_PASSWORD=[redacted] make".to_owned(),
            ),
            (
                "postgres://app:s3cr/t@db:5432/x".to_owned(),
                "postgres://app:[redacted]@db:5432/x".to_owned(),
            ),
            (
                "curl -u admin:letmein1 x".to_owned(),
                "curl -u admin:[redacted] x".to_owned(),
            ),
            (
                "the password of the admin is Otter1234!".to_owned(),
                "the password of the admin is [redacted]".to_owned(),
            ),
            (
                "client_secret: \"abc123def\"".to_owned(),
                "client_secret: \"[redacted]\"".to_owned(),
            ),
        ] {
            assert_eq!(redacted(&text), expected);
        }
    }
}

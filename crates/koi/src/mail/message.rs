//! One message: who wrote what to whom, as text.

use kenning_entities::page;
use kenning_text::hex;
use mail_parser::{Address, HeaderValue, MessageParser, PartType};
use serde_json::{Value, json};

/// How much of a header is kept.
const HEADER_CHARS_MAX: usize = 1_000;

/// The title of a message without a subject.
const NO_SUBJECT: &str = "(no subject)";

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// As its sender named it, or by its content.
    pub id: String,
    /// The first message of its conversation, by its id; itself, if it is not a reply.
    pub conversation: String,
    /// Never empty.
    pub subject: String,
    /// Who wrote it, on one line.
    pub from: String,
    /// To whom, on one line.
    pub to: String,
    /// In RFC 3339; nothing if it has none.
    pub date: Option<String>,
    /// The text part, otherwise the text of its HTML part.
    pub body: String,
    /// The hash of everything above.
    pub hash: String,
}

impl Message {
    /// Reads a message, however broken it is; `None` if nothing can be read.
    pub fn read(raw: &[u8]) -> Option<Self> {
        let parsed = MessageParser::default().parse(raw)?;
        if parsed.headers().is_empty() {
            return None;
        }
        let subject = header(parsed.subject().unwrap_or_default());
        let date = parsed.date().filter(|it| it.is_valid());
        let mut message = Self {
            id: header(parsed.message_id().unwrap_or_default()),
            conversation: first_of_conversation(&parsed),
            subject: if subject.is_empty() {
                NO_SUBJECT.to_owned()
            } else {
                subject
            },
            from: addresses(parsed.from()),
            to: addresses(parsed.to()),
            date: date.map(mail_parser::DateTime::to_rfc3339),
            body: body(&parsed),
            hash: String::new(),
        };
        let all = json!([
            message.subject,
            message.from,
            message.to,
            message.date,
            message.body
        ]);
        message.hash = hex::sha256(all.to_string().as_bytes())[..32].to_owned();
        if message.id.is_empty() {
            message.id = format!("sha256-{}", message.hash);
        }
        if message.conversation.is_empty() {
            message.conversation.clone_from(&message.id);
        }
        Some(message)
    }

    /// What search results show beside the text.
    pub(super) fn card(&self) -> Value {
        json!({ "from": self.from, "to": self.to, "date": self.date, "subject": self.subject })
    }
}

/// The oldest message that this one says it belongs to, or nothing.
fn first_of_conversation(parsed: &mail_parser::Message<'_>) -> String {
    let first = |value: &HeaderValue<'_>| match value {
        HeaderValue::Text(name) => Some(header(name)),
        HeaderValue::TextList(names) => names.first().map(|name| header(name)),
        _ => None,
    };
    let named = first(parsed.references()).filter(|it| !it.is_empty());
    let named = named.or_else(|| first(parsed.in_reply_to()));
    named.unwrap_or_default()
}

/// On one line, without characters that the store does not keep.
fn header(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .take(HEADER_CHARS_MAX)
        .collect();
    line.trim().to_owned()
}

fn addresses(all: Option<&Address<'_>>) -> String {
    let one = |it: &mail_parser::Addr<'_>| match (it.name(), it.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    };
    let Some(all) = all else {
        return String::new();
    };
    let shown: Vec<String> = all.iter().map(one).filter(|it| !it.is_empty()).collect();
    header(&shown.join(", "))
}

/// The text part, else the page, else whatever is text in a message that is not well made.
fn body(parsed: &mail_parser::Message<'_>) -> String {
    let of = |ids: &[u32]| -> Vec<&mail_parser::MessagePart<'_>> {
        let part = |id: &u32| parsed.parts.get(usize::try_from(*id).ok()?);
        ids.iter().filter_map(part).collect()
    };
    let any: Vec<&mail_parser::MessagePart<'_>> = parsed.parts.iter().collect();
    let ways = [texts(&of(&parsed.text_body)), pages(&of(&parsed.html_body))];
    let mut ways = ways.into_iter().filter(|it| !it.trim().is_empty());
    let body = ways.next().unwrap_or_else(|| texts(&any));
    body.replace("\r\n", "\n").replace('\0', "\u{fffd}")
}

fn texts(parts: &[&mail_parser::MessagePart<'_>]) -> String {
    let texts = parts.iter().filter_map(|it| match &it.body {
        PartType::Text(it) => Some(it.as_ref()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn pages(parts: &[&mail_parser::MessagePart<'_>]) -> String {
    let pages = parts.iter().filter_map(|it| match &it.body {
        PartType::Html(it) => Some(page::read(it).text),
        _ => None,
    });
    pages.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &[u8], subject: &str, from: &str, body: &str) {
        let message = Message::read(raw).unwrap();
        let found = (
            message.subject.as_str(),
            message.from.as_str(),
            message.body.trim(),
        );
        assert_eq!(found, (subject, from, body));
    }

    #[test]
    fn a_reply_is_of_the_conversation_that_it_answers() {
        let conversation = |headers: &str| {
            let raw = format!("From: a@b.c\nMessage-ID: <own@x>\n{headers}\n\ntext\n");
            Message::read(raw.as_bytes()).unwrap().conversation
        };
        assert_eq!(conversation("Subject: new"), "own@x");
        assert_eq!(conversation("In-Reply-To: <first@x>"), "first@x");
        let both = "References: <first@x> <second@x>\nIn-Reply-To: <second@x>";
        assert_eq!(conversation(both), "first@x");
    }

    #[test]
    fn headers_and_bodies_are_decoded() {
        check(
            b"From: =?UTF-8?B?w4Fubg==?= <ann@example.com>\r\nSubject: =?ISO-8859-1?Q?Gr=FC=DFe?=\r\n\
              Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
              caf=C3=A9 and a soft=\r\n break\r\n",
            "Grüße",
            "Ánn <ann@example.com>",
            "café and a soft break",
        );
        check(
            b"From: a@b.c\nSubject: base\nContent-Type: text/plain; charset=ISO-8859-15\n\
              Content-Transfer-Encoding: base64\n\npCBhbmQgdGV4dA==\n",
            "base",
            "a@b.c",
            "€ and text",
        );
        check(
            b"From: a@b.c\nSubject: koi\nContent-Type: text/plain; charset=gb2312\n\n\xc4\xe3\xba\xc3\n",
            "koi",
            "a@b.c",
            "你好",
        );
        check(
            b"From: a@b.c\nContent-Type: multipart/alternative; boundary=x\n\n--x\n\
              Content-Type: text/html\n\n<p>no</p>\n--x\nContent-Type: text/plain\n\nthe text\n--x--\n",
            "(no subject)",
            "a@b.c",
            "the text",
        );
        check(
            b"From: a@b.c\nSubject: page\nContent-Type: text/html\n\n\
              <html><body><script>x()</script><p>Only a <b>page</b> here.</p></body></html>\n",
            "page",
            "a@b.c",
            "Only a page here.",
        );
    }

    #[test]
    fn broken_messages_are_read_as_far_as_they_can_be() {
        assert_eq!(Message::read(b""), None);
        assert_eq!(Message::read(b"\n\n"), None);
        let cut = b"From: a@b.c\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\
            Content-Type: text/plain\n\nthe beginning of a te";
        check(cut, "(no subject)", "a@b.c", "the beginning of a te");
        let odd = Message::read(b"Subject: a\0b\nMessage-ID: <x@y>\n\nz\0z").unwrap();
        assert_eq!((odd.id.as_str(), odd.body.as_str()), ("x@y", "z\u{fffd}z"));
        let nameless = Message::read(b"Subject: a\n\nb").unwrap();
        assert_eq!(nameless.id, format!("sha256-{}", nameless.hash));
    }
}

//! Messages of a mailbox: anybody can send one.

use super::{ensure, in_time, owned, pieces};
use crate::{Source, Subject, Target};
use kenning_koi::MailMessage;

pub(super) const TARGET: Target = Target {
    name: "mail_message",
    about: "a message has a name, headers of one line and a text that can be stored",
    words: WORDS,
    seeds: || owned(SEEDS),
    generate,
    open: || Box::new(Mail),
    pass_cases: 1_500,
    fresh_every: u64::MAX,
    contains_panics: false,
};

const WORDS: &[&str] = &[
    "From: a@b.c\n",
    "To: \"Ann, B\" <ann@example.com>, Group: b@c.d, e@f.g;\n",
    "Subject: ",
    "=?UTF-8?B?w4Fubg==?=",
    "=?ISO-8859-1?Q?Gr=FC=DFe?=",
    "=?x?B?",
    "Message-ID: <own@x>\n",
    "References: <first@x> <second@x>\n",
    "In-Reply-To: <first@x>\n",
    "Date: Tue, 1 Jul 2003 10:52:37 +0200\n",
    "Date: 99 Foo 99999999999 99:99:99 +9999\n",
    "Content-Type: multipart/mixed; boundary=x\n",
    "Content-Type: multipart/alternative; boundary=\"x\"\n",
    "Content-Type: text/html; charset=utf-7\n",
    "Content-Type: text/plain; charset=iso-2022-jp\n",
    "Content-Type: message/rfc822\n",
    "Content-Disposition: attachment; filename*0*=utf-8''%e4; filename*1=b\n",
    "Content-Transfer-Encoding: quoted-printable\n",
    "Content-Transfer-Encoding: base64\n",
    "--x\n",
    "--x--\n",
    "\n\n",
    "\r\n",
    "\n ",
    "=\n",
    "=E9",
    "begin 644 a\n",
    "<p>",
    "<script>",
    "(((",
    "<",
    "\0",
];

const SEEDS: &[&str] = &[
    "From: =?UTF-8?B?w4Fubg==?= <ann@example.com>\r\nTo: b@c.d\r\nSubject: =?ISO-8859-1?Q?Gr=FC=DFe?=\r\nMessage-ID: <own@x>\r\nDate: Tue, 1 Jul 2003 10:52:37 +0200\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ncaf=C3=A9 and a soft=\r\n break\r\n",
    "From: a@b.c\nContent-Type: multipart/alternative; boundary=x\n\n--x\nContent-Type: text/html\n\n<p>no</p>\n--x\nContent-Type: text/plain\n\nthe text\n--x--\n",
    "From: a@b.c\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: message/rfc822\n\nFrom: d@e.f\nSubject: inner\nContent-Type: multipart/mixed; boundary=y\n\n--y\n\ninner text\n--y--\n--x--\n",
    "From: a@b.c\nSubject: base\nContent-Type: text/plain; charset=ISO-8859-15\nContent-Transfer-Encoding: base64\n\npCBhbmQgdGV4dA==\n",
];

fn generate(source: &mut Source) -> Vec<u8> {
    let pairs = &[
        (
            "Content-Type: multipart/mixed; boundary=x\n\n--x\n",
            "\n--x--\n",
        ),
        ("Content-Type: message/rfc822\n\n", "\n"),
        ("(", ")"),
        ("<div>", "</div>"),
        ("<", ">"),
        ("=?UTF-8?Q?", "?="),
    ];
    pieces(source, WORDS, pairs).into_bytes()
}

struct Mail;

impl Subject for Mail {
    fn check(&mut self, input: &[u8]) -> Result<(), String> {
        let Some(message) = in_time(input, || MailMessage::read(input))? else {
            return Ok(());
        };
        ensure!(!message.id.is_empty(), "a message without a name");
        ensure!(!message.conversation.is_empty(), "of no conversation");
        ensure!(!message.subject.is_empty(), "without a subject");
        for header in [
            &message.id,
            &message.conversation,
            &message.subject,
            &message.from,
            &message.to,
        ] {
            let n = header.chars().count();
            ensure!(n <= 1_100, "a header of {n} characters");
            ensure!(!header.contains(char::is_control), "a header: {header:?}");
        }
        ensure!(
            !message.body.contains('\0'),
            "a text that no store keeps: {:?}",
            message.body
        );
        // A part can be named as text and as a page, and an encoding can make three bytes of one.
        ensure!(
            message.body.len() <= 8 * input.len() + 1_000,
            "{} bytes became a text of {}",
            input.len(),
            message.body.len()
        );
        let again = MailMessage::read(input);
        ensure!(again.as_ref() == Some(&message), "read twice, two messages");
        Ok(())
    }
}

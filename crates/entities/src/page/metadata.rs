//! A page's metadata: from its head, and from data that it carries for search engines.

use super::dom::{Dom, Id};
use super::linked;
use super::summary::flat;
use kenning_text::line::one_line;

/// A page's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its title.
    pub title: Option<String>,
    /// What it is about, in a sentence or two.
    pub description: Option<String>,
    /// Words that it wants to be found by.
    pub keywords: Vec<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was published, as it says.
    pub published: Option<String>,
    /// The address that it wants to be known by.
    pub canonical: Option<String>,
    /// Its language, as a tag such as `en` or `pt-BR`.
    pub language: Option<String>,
    /// A picture that stands for it.
    pub image: Option<String>,
    /// The site that it belongs to.
    pub site_name: Option<String>,
}

pub(super) fn of(dom: &Dom) -> Metadata {
    let all = dom.below(0, |_| false);
    let of = Head {
        metas: of_name(dom, &all, "meta"),
        links: of_name(dom, &all, "link"),
        dom,
    };
    let linked = linked::of(dom, &all);
    let title = of_name(dom, &all, "title").into_iter().next();
    let time = of_name(dom, &all, "time").into_iter();
    let time = time.filter_map(|it| dom.attribute(it, "datetime")).next();
    let html = of_name(dom, &all, "html").into_iter().next();
    let language = html.and_then(|html| {
        dom.attribute(html, "lang")
            .or(dom.attribute(html, "xml:lang"))
    });
    let keywords = of.meta(&["keywords"]).unwrap_or_default();
    let keywords = keywords
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty());
    Metadata {
        title: title
            .and_then(|it| text(&flat(dom, it, |_| false)))
            .or_else(|| of.meta(&["og:title", "twitter:title"]))
            .or(linked.title),
        description: of
            .meta(&["description"])
            .or_else(|| of.meta(&["og:description", "twitter:description", "dc.description"])),
        keywords: keywords.map(str::to_owned).collect(),
        author: of
            .meta(&["author"])
            .or(linked.author)
            .or_else(|| of.meta(&["article:author", "dc.creator", "twitter:creator"])),
        published: of
            .meta(&["article:published_time"])
            .or(linked.published)
            .or_else(|| {
                of.meta(&[
                    "date",
                    "pubdate",
                    "dc.date",
                    "datepublished",
                    "dcterms.created",
                ])
            })
            .or_else(|| time.and_then(text)),
        canonical: of.link("canonical").or_else(|| of.meta(&["og:url"])),
        language: language
            .and_then(text)
            .or_else(|| of.meta(&["content-language", "og:locale"]))
            .map(|it| it.replace('_', "-")),
        image: of.meta(&["og:image", "twitter:image"]),
        site_name: of.meta(&["og:site_name", "application-name"]),
    }
}

fn of_name(dom: &Dom, all: &[Id], name: &str) -> Vec<Id> {
    all.iter()
        .copied()
        .filter(|it| dom.name(*it) == name)
        .collect()
}

/// A value that is not empty.
fn text(value: &str) -> Option<String> {
    Some(one_line(value)).filter(|it| !it.is_empty())
}

struct Head<'a> {
    dom: &'a Dom,
    metas: Vec<Id>,
    links: Vec<Id>,
}

impl Head<'_> {
    /// The content of the first of these names that has one, whatever attribute has the name.
    fn meta(&self, names: &[&str]) -> Option<String> {
        let of = |name: &str| {
            let is_named = |it: &Id| {
                let kinds = ["name", "property", "itemprop", "http-equiv"];
                let mut values = kinds
                    .iter()
                    .filter_map(|kind| self.dom.attribute(*it, kind));
                values.any(|it| it.trim().eq_ignore_ascii_case(name))
            };
            let named = self.metas.iter().copied().filter(is_named);
            named
                .filter_map(|it| text(self.dom.attribute(it, "content")?))
                .next()
        };
        names.iter().find_map(|name| of(name))
    }

    fn link(&self, relation: &str) -> Option<String> {
        let is_it = |it: &Id| {
            let relations = self.dom.attribute(*it, "rel").unwrap_or_default();
            relations
                .split_whitespace()
                .any(|it| it.eq_ignore_ascii_case(relation))
        };
        let found = self.links.iter().copied().find(is_it)?;
        text(self.dom.attribute(found, "href")?)
    }
}

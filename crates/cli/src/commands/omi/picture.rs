//! Draws the graph.
//!
//! Memories repel each other and edges attract their ends, for a number of steps that depends only on
//! the size: the same graph gives the same drawing. Nothing is loaded from elsewhere, so the file can
//! be sent and opened anywhere.

use super::graph::label;
use kenning_engine::omi::{Memory, MemoryGraph, MemoryType};
use kenning_text::escape::xml as escaped;
use std::collections::HashMap;
use std::fmt::Write;

/// The most pairs that are computed, so that a large graph takes seconds and not hours.
const PAIRS_MAX: usize = 100_000_000;
const STEPS_MAX: usize = 300;
/// The distance of two connected memories.
const DISTANCE: f64 = 120.0;
/// The room for a label at the edge.
const MARGIN: f64 = 160.0;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    x: f64,
    y: f64,
}

/// A self-contained SVG.
pub(super) fn svg(graph: &MemoryGraph) -> String {
    let names: HashMap<&str, usize> = graph
        .memories
        .iter()
        .enumerate()
        .map(|(at, it)| (it.id.as_str(), at))
        .collect();
    // Evidence that is not a memory is left out.
    let joined: Vec<(usize, usize, &str)> = graph
        .edges
        .iter()
        .filter_map(|edge| {
            let (from, to) = (names.get(&*edge.source)?, names.get(&*edge.target)?);
            Some((*from, *to, edge.relation.as_str()))
        })
        .collect();
    let ends: Vec<(usize, usize)> = joined.iter().map(|it| (it.0, it.1)).collect();
    let mut points = layout(graph.memories.len(), &ends);
    let (width, height) = into_view(&mut points);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>{} memories, {} edges</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        graph.memories.len(),
        joined.len()
    );
    for (from, to, relation) in joined {
        let (a, b) = (points[from], points[to]);
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{}\"><title>{}</title></line>",
            a.x,
            a.y,
            b.x,
            b.y,
            edge_color(relation),
            escaped(relation)
        );
    }
    for (memory, at) in graph.memories.iter().zip(&points) {
        let _ = writeln!(
            out,
            "<g><title>{}</title><circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            escaped(&title(memory)),
            at.x,
            at.y,
            color(memory.memory_type),
            at.x + 9.0,
            at.y + 4.0,
            escaped(&label(memory))
        );
    }
    out + "</svg>\n"
}

/// The same in an HTML page, with a legend.
pub(super) fn html(graph: &MemoryGraph) -> String {
    let legend: String = MemoryType::ALL
        .iter()
        .map(|it| {
            format!(
                "<span><b style=\"color:{}\">●</b> {}</span>\n",
                color(*it),
                it.as_str()
            )
        })
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>Memories</title>\n\
         <style>body {{ font-family: sans-serif; margin: 1rem }} span {{ margin-right: 1rem }} \
         svg {{ max-width: 100%; height: auto }}</style>\n\
         </head>\n<body>\n<h1>Memories</h1>\n<p>\n{legend}</p>\n{}</body>\n</html>\n",
        svg(graph)
    )
}

fn title(memory: &Memory) -> String {
    let confidence = memory
        .confidence
        .map_or_else(String::new, |it| format!(", confidence {it:.2}"));
    format!(
        "{} ({}{confidence})\n{}",
        memory.id,
        memory.memory_type.as_str(),
        memory.content
    )
}

fn color(memory_type: MemoryType) -> &'static str {
    match memory_type {
        MemoryType::Fact => "#1f77b4",
        MemoryType::Experience => "#2ca02c",
        MemoryType::Belief => "#9467bd",
        MemoryType::Decision => "#d95f02",
    }
}

fn edge_color(relation: &str) -> &'static str {
    match relation {
        "SUPPORTS" => "#2ca02c",
        "CONTRADICTS" => "#d62728",
        _ => "#999999",
    }
}

/// The positions of the memories: a spiral, then moved by the forces until it is stable.
#[expect(clippy::cast_precision_loss, reason = "counts of things on a screen")]
fn layout(n: usize, joined: &[(usize, usize)]) -> Vec<Point> {
    const GOLDEN_ANGLE: f64 = 2.399_963_229_728_653;
    let mut points: Vec<Point> = (0..n)
        .map(|at| {
            let (radius, angle) = (DISTANCE * (at as f64).sqrt(), at as f64 * GOLDEN_ANGLE);
            Point {
                x: radius * angle.cos(),
                y: radius * angle.sin(),
            }
        })
        .collect();
    let steps = STEPS_MAX.min(PAIRS_MAX / n.saturating_mul(n).max(1));
    for step in 0..steps {
        let heat = DISTANCE * (1.0 - step as f64 / steps as f64);
        let moves = forces(&points, joined);
        for (point, force) in points.iter_mut().zip(moves) {
            let length = force.x.hypot(force.y).max(1e-9);
            let reach = length.min(heat) / length;
            point.x += force.x * reach;
            point.y += force.y * reach;
        }
    }
    points
}

fn forces(points: &[Point], joined: &[(usize, usize)]) -> Vec<Point> {
    let mut moves = vec![Point { x: 0.0, y: 0.0 }; points.len()];
    let mut push = |at: usize, x: f64, y: f64| {
        moves[at].x += x;
        moves[at].y += y;
    };
    for (at, a) in points.iter().enumerate() {
        // A little toward the center, so that unconnected memories do not drift away.
        push(at, -a.x * 0.02, -a.y * 0.02);
        for (other, b) in points.iter().enumerate().skip(at + 1) {
            let (dx, dy) = (a.x - b.x, a.y - b.y);
            let square = dx.mul_add(dx, dy * dy).max(1.0);
            let (x, y) = (
                dx * DISTANCE * DISTANCE / square / 4.0,
                dy * DISTANCE * DISTANCE / square / 4.0,
            );
            push(at, x, y);
            push(other, -x, -y);
        }
    }
    for &(from, to) in joined {
        let (dx, dy) = (points[to].x - points[from].x, points[to].y - points[from].y);
        let pull = dx.hypot(dy) / DISTANCE / 4.0;
        push(from, dx * pull, dy * pull);
        push(to, -dx * pull, -dy * pull);
    }
    moves
}

/// Moves everything into view and returns the size.
fn into_view(points: &mut [Point]) -> (f64, f64) {
    let least = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    if points.is_empty() {
        return (2.0 * MARGIN, 2.0 * MARGIN);
    }
    let (left, top) = (least(|it| it.x), least(|it| it.y));
    let (right, bottom) = (most(|it| it.x), most(|it| it.y));
    for point in points.iter_mut() {
        point.x += MARGIN / 4.0 - left;
        point.y += MARGIN / 4.0 - top;
    }
    // Labels are to the right.
    (right - left + MARGIN * 2.0, bottom - top + MARGIN / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_engine::omi::GraphEdge;

    fn memory(id: &str, content: &str) -> Memory {
        Memory {
            id: id.to_owned(),
            content: content.to_owned(),
            memory_type: MemoryType::Fact,
            confidence: None,
            tags: Vec::new(),
            created_ms: 0,
            superseded_by: None,
            session_id: None,
            project: String::new(),
        }
    }

    fn graph(contents: &[&str]) -> MemoryGraph {
        let memories = contents.iter().enumerate();
        MemoryGraph {
            memories: memories
                .map(|(at, it)| memory(&format!("m{at}"), it))
                .collect(),
            edges: vec![GraphEdge {
                source: "m0".to_owned(),
                target: "m1".to_owned(),
                relation: "RELATED_TO".to_owned(),
                strength: 0.5,
                created_ms: 0,
            }],
            access: HashMap::new(),
        }
    }

    #[test]
    fn what_is_remembered_is_text_and_nothing_else() {
        let nasty = "</title><script>alert('x')</script>\u{0}&\"";
        let picture = html(&graph(&[nasty, "b"]));
        assert!(!picture.contains("<script"), "{picture}");
        assert!(!picture.contains('\u{0}'), "{picture}");
        assert_eq!(picture.matches("<circle").count(), 2);
        assert_eq!(picture.matches("<line").count(), 1);
    }

    #[test]
    fn joined_memories_are_nearer_than_others_and_every_run_is_the_same() {
        let joined = [(0, 1), (1, 2), (3, 4), (4, 5)];
        let points = layout(6, &joined);
        assert_eq!(points, layout(6, &joined));
        let distance =
            |a: usize, b: usize| (points[a].x - points[b].x).hypot(points[a].y - points[b].y);
        for (a, b) in joined {
            assert!(distance(a, b) < distance(0, 5), "{a} {b}: {points:?}");
        }
        assert!(
            points
                .iter()
                .all(|point| point.x.is_finite() && point.y.is_finite())
        );
    }

    #[test]
    fn no_graph_is_too_small() {
        for contents in [&[][..], &["a"]] {
            let mut graph = graph(contents);
            graph.edges.clear();
            assert!(svg(&graph).ends_with("</svg>\n"));
        }
    }
}

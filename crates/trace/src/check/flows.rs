//! Arrows between slices.

use super::event::Event;
use super::{Checker, Report, SLACK, Slice, Spot, Track};
use crate::read::json::Json;
use crate::texts::Texts;
use std::collections::{BTreeMap, HashMap};

/// One end of an arrow.
pub(super) struct Flow {
    category: u32,
    spot: Spot,
    id: i64,
    track: Track,
    time: f64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Start,
    Step,
    Finish,
}

impl Flow {
    pub(super) fn new(event: &Event<'_>, report: &mut Report, texts: &mut Texts) -> Option<Flow> {
        let given = event.json.get("id");
        let what = || format!("{}: flow {:?} id={given:?}", event.spot, event.category);
        let Some(category) = event.category else {
            report.error("flow.cat", || format!("{}: cat missing", what()));
            return None;
        };
        let Some(id) = given.and_then(Json::int).and_then(|id| i64::try_from(id).ok()).filter(|&id| id > 0)
        else {
            report.error("flow.id", || format!("{}: id must be an integer above 0", what()));
            return None;
        };
        if ["fwdbwd", "ac2g"].contains(&category) && event.name != category {
            report.error("flow.name", || format!("{}: must be named like its category", what()));
        }
        if event.phase == "f" && event.json.get("bp").and_then(Json::text) != Some("e") {
            report.error("flow.bp", || format!("{}: a finish needs bp: \"e\"", what()));
        }
        let kind = match event.phase {
            "s" => Kind::Start,
            "f" => Kind::Finish,
            _ => Kind::Step,
        };
        Some(Flow {
            spot: event.spot,
            category: texts.number(category),
            id,
            track: event.track,
            time: event.time,
            kind,
        })
    }
}

/// Slices by when they start, to find the one an arrow is bound to.
struct Places<'a> {
    tracks: HashMap<Track, Lane<'a>>,
}

/// The slices of a track, and for each the one before it that is open when it starts.
#[derive(Default)]
struct Lane<'a> {
    slices: Vec<&'a Slice>,
    before: Vec<Option<u32>>,
}

/// Arrows that are bound deeper than this are taken for loose: no real trace is so deep.
const DEEPEST: usize = 4096;

impl<'a> Places<'a> {
    fn new(slices: impl Iterator<Item = &'a Slice>) -> Places<'a> {
        let mut tracks: HashMap<Track, Lane<'_>> = HashMap::new();
        for slice in slices {
            tracks.entry(slice.track).or_default().slices.push(slice);
        }
        tracks.values_mut().for_each(Lane::link);
        Places { tracks }
    }

    /// The slices that start at the end of an arrow, or if there is none, those that it lies in.
    fn bound(&self, flow: &Flow) -> Vec<&'a Slice> {
        let Some(lane) = self.tracks.get(&flow.track) else { return Vec::new() };
        let first = lane.slices.partition_point(|slice| slice.start < flow.time);
        let exact: Vec<_> =
            lane.slices[first..].iter().take_while(|slice| slice.start == flow.time).copied().collect();
        if !exact.is_empty() {
            return exact;
        }
        let begun = lane.slices.partition_point(|slice| slice.start - SLACK <= flow.time);
        let last = begun.checked_sub(1).map(|last| last as u32);
        let open = std::iter::successors(last, |&at| lane.before[at as usize]).take(DEEPEST);
        let covers = |slice: &&Slice| flow.time <= slice.end() + SLACK;
        open.map(|at| lane.slices[at as usize]).filter(covers).collect()
    }
}

impl Lane<'_> {
    fn link(&mut self) {
        self.slices.sort_by(|a, b| a.start.total_cmp(&b.start));
        let mut open: Vec<u32> = Vec::new();
        for (i, slice) in self.slices.iter().enumerate() {
            while open.pop_if(|at| self.slices[*at as usize].end() + 2.0 * SLACK < slice.start).is_some() {}
            self.before.push(open.last().copied());
            open.push(i as u32);
        }
    }
}

impl Checker {
    /// Each arrow has two ends, on slices that belong together.
    pub(super) fn flows(&mut self) {
        let mut groups: BTreeMap<(u32, i64), Vec<&Flow>> = BTreeMap::new();
        for flow in &self.flows {
            groups.entry((flow.category, flow.id)).or_default().push(flow);
        }
        if groups.is_empty() {
            return;
        }
        let places =
            Places::new(self.slices.iter().filter(|slice| self.texts.get(slice.category) != "Trace"));
        for ((category, id), flows) in groups {
            let category = self.texts.get(category);
            arrow(category, id, &flows, &places, &mut self.report);
        }
    }
}

fn arrow(category: &str, id: i64, flows: &[&Flow], places: &Places<'_>, report: &mut Report) {
    let what = || format!("{}: flow {category} id={id}", flows[0].spot);
    let of = |kind: Kind| flows.iter().filter(move |flow| flow.kind == kind);
    let (starts, finishes) = (of(Kind::Start).count(), of(Kind::Finish).count());
    if starts != 1 || finishes < 1 || category == "fwdbwd" && finishes != 1 {
        let place = || format!("{} has {starts} starts and {finishes} finishes", what());
        return if category == "ac2g" && starts <= 1 {
            report.warning("flow.pair", place)
        } else {
            report.error("flow.pair", place)
        };
    }
    let Some(start) = of(Kind::Start).next() else { return };
    let from = places.bound(start);
    if from.is_empty() {
        report.error("flow.bind", || format!("{}: its start is on no slice", what()));
    }
    for finish in of(Kind::Finish) {
        let to = places.bound(finish);
        if to.is_empty() {
            report.error("flow.bind", || format!("{}: its finish is on no slice", what()));
        }
        if finish.time < start.time {
            report.error("flow.order", || format!("{}: finishes before it starts", what()));
        }
        if from.is_empty() || to.is_empty() {
            continue;
        }
        let shared = |get: fn(&Slice) -> Option<i64>| {
            from.iter()
                .filter_map(|slice| get(slice))
                .any(|one| to.iter().any(|slice| get(slice) == Some(one)))
        };
        match category {
            "fwdbwd" if !shared(Slice::sequence) => {
                report.error("flow.fwdbwd.sequence", || format!("{}: different sequence numbers", what()));
            }
            "ac2g" if !shared(Slice::correlation) => {
                report.error("flow.ac2g.correlation", || format!("{}: different correlations", what()));
            }
            _ => {}
        }
        if category == "fwdbwd" && !to.iter().any(|slice| slice.is_backward) {
            report.error("flow.fwdbwd.backward", || format!("{}: finish is on no backward call", what()));
        }
    }
}

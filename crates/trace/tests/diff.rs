//! What changed between runs, and what is only noise.

use cresset_trace::{Diff, Metric, Row, Summary, Verdict};

fn run(rows: &[(&str, u64, u64)]) -> Summary {
    let row = |&(name, micros, count): &(&str, u64, u64)| Row {
        key: name.to_owned(),
        count,
        self_cpu_time_total: micros * 1000,
        cpu_time_total: micros * 1000,
        ..Row::default()
    };
    Summary { rows: rows.iter().map(row).collect(), ..Summary::default() }
}

fn runs(times: &[u64]) -> Vec<Summary> {
    times.iter().map(|&micros| run(&[("aten::mm", micros, 4)])).collect()
}

fn verdict(before: &[u64], after: &[u64]) -> Verdict {
    Diff::of(&runs(before), &runs(after), Metric::SelfHost, false).rows[0].verdict
}

#[test]
fn a_change_counts_when_nearly_all_runs_agree() {
    assert_eq!(verdict(&[100, 102, 98, 101, 99], &[110, 112, 108, 111, 109]), Verdict::Slower);
    assert_eq!(verdict(&[110, 112, 108, 111, 109], &[100, 102, 98, 101, 99]), Verdict::Faster);
    // Runs that overlap tell nothing, however far their medians are apart.
    assert_eq!(verdict(&[100, 150, 90], &[130, 95, 140]), Verdict::Same);
    // One run that was disturbed among five could have been chance; among twenty it is not.
    assert_eq!(verdict(&[100, 100, 101, 102, 300], &[120, 121, 122, 123, 124]), Verdict::Same);
    assert_eq!(verdict(&[100; 20], &[vec![120; 19], vec![90]].concat()), Verdict::Slower);
    // Less than a percent is nothing.
    assert_eq!(verdict(&[10_000, 10_001], &[10_050, 10_051]), Verdict::Same);
}

#[test]
fn names_that_come_and_go_are_told() {
    let before = [run(&[("kept", 5, 1), ("gone", 7, 1)])];
    let after = [run(&[("kept", 5, 1), ("new", 9, 2)])];
    let diff = Diff::of(&before, &after, Metric::SelfHost, false);
    let found: Vec<_> = diff.rows.iter().map(|row| (row.name.as_str(), row.verdict, row.percent())).collect();
    assert_eq!(
        found,
        [
            ("new", Verdict::New, None),
            ("gone", Verdict::Gone, Some(-100.0)),
            ("kept", Verdict::Same, Some(0.0))
        ]
    );
    assert_eq!((diff.total.before.time(), diff.total.after.time()), (12_000, 14_000));
    let table = diff.table(10).to_string();
    let line = table.lines().find(|line| line.starts_with("new")).unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["new", "new", "0.000us", "9.000us", "+9.000us", "0.0%", "0", "->", "2"]
    );
    assert!(table.contains("1 of 3 names did not change"), "{table}");
}

#[test]
fn only_what_is_worth_it_fails() {
    let before = [run(&[("large", 1000, 1), ("small", 1, 1)])];
    let after = [run(&[("large", 1040, 1), ("small", 3, 1)])];
    let diff = Diff::of(&before, &after, Metric::SelfHost, false);
    let slower = |percent| diff.slower_than(percent).iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    // The small one takes three times as long, which is a fifth of a percent of the whole.
    assert_eq!(slower(3.0), ["total", "large"]);
    assert_eq!(slower(5.0), Vec::<String>::new());
}

#[test]
fn runs_of_different_lengths_are_compared_by_step() {
    let steps = |count: u64| {
        let step = |number| cresset_trace::Step { number, start: 0, duration: 1 };
        Summary { steps: (0..count).map(step).collect(), ..run(&[("aten::mm", 10 * count, count)]) }
    };
    let diff = Diff::of(&[steps(3)], &[steps(7)], Metric::SelfHost, true);
    assert_eq!(
        (diff.rows[0].verdict, diff.rows[0].difference(), diff.rows[0].after.count()),
        (Verdict::Same, 0, 1)
    );
}

#[test]
fn an_unknown_metric_is_an_error_that_lists_the_legal_ones() {
    let error = Metric::named("time").unwrap_err().to_string();
    assert!(
        error.starts_with("cannot compare by \"time\": legal metrics are self_cpu_time_total, "),
        "{error}"
    );
}

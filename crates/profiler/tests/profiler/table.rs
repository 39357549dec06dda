//! Averages and tables.

use crate::fake::{Op, alone, op};
use cresset_profiler::{Grouping, Profiler, Schedule, record_function};

#[test]
fn key_averages_table_contains_expected_columns() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            (0..3).for_each(|_| op("aten::add"));
            record_function("aten::add").run(|| op("aten::mul"));
        })
        .unwrap();
    let rows = profiler.key_averages().unwrap();
    let counts: Vec<_> = rows.iter().map(|r| (r.key.as_str(), r.is_user_annotation, r.count)).collect();
    assert_eq!(counts, [("aten::add", false, 3), ("aten::add", true, 1), ("aten::mul", false, 1)]);
    assert_eq!(rows[0].cpu_time() * 3.0, rows[0].cpu_time_total as f64);
    let table = rows.table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[1],
        "         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  "
    );
    assert_eq!(lines[0], lines[2]);
    assert_eq!(lines[0], format!("-------------  {}", "------------  ".repeat(6)));
    assert!(lines[3].starts_with("    aten::add  ") && lines[3].ends_with("             3  "));
    assert!(lines[7].starts_with("Self CPU time total: ") && lines[7].ends_with("us"));
    assert_eq!(table, rows.table().to_string());
}

#[test]
fn rows_are_sorted_and_limited() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            op("aten::once");
            (0..3).for_each(|_| op("aten::thrice"));
            (0..2).for_each(|_| op("aten::twice"));
        })
        .unwrap();
    let rows = profiler.key_averages().unwrap();
    let table = rows.table().sort_by("count").unwrap().row_limit(2).to_string();
    let names: Vec<_> =
        table.lines().skip(3).take(2).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["aten::thrice", "aten::twice"]);
    assert!(!table.contains("aten::once"));
    assert!(rows.table().row_limit(None).to_string().contains("aten::once"));
    assert!(rows.table().sort_by("npu_time_total").is_ok());
    let Err(error) = rows.table().sort_by("bogus") else { panic!("bogus is no figure") };
    assert!(error.to_string().starts_with("cannot sort by \"bogus\": legal keys are key, count, cpu_time, "));
}

#[test]
fn shapes_split_rows_when_asked() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .record_shapes(true)
        .with_flops(true)
        .run(|_| {
            Op::new("aten::mm").shapes(&[&[2, 2], &[2, 2]]).flops(16_000).run(|| ());
            Op::new("aten::mm").shapes(&[&[4, 4], &[4, 4]]).flops(128_000).run(|| ());
            op("aten::t");
        })
        .unwrap();
    assert_eq!(profiler.key_averages().unwrap().len(), 2);
    let rows = profiler.key_averages_by(Grouping::default().by_input_shape(true)).unwrap();
    assert_eq!(rows[1].input_shapes.as_deref(), Some("[[4, 4], [4, 4], []]"));
    let table = rows.table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].ends_with("            Input Shapes  Total KFLOPs  "), "{table}");
    assert!(lines[4].ends_with("    [[4, 4], [4, 4], []]       128.000  "), "{table}");
    assert!(lines[5].ends_with("                      []            --  "), "{table}");
}

#[test]
fn an_operator_that_only_calls_its_namesake_is_one_row_and_one_call() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| Op::new("aten::to").run(|| Op::new("aten::to").run(|| op("aten::copy_"))))
        .unwrap();
    let rows = profiler.key_averages().unwrap();
    let outer = profiler.events().unwrap().next().unwrap();
    assert_eq!((rows[0].count, rows[0].cpu_time_total), (1, outer.duration()));
    assert_eq!(rows[0].self_cpu_time_total + rows[1].cpu_time_total, outer.duration());
}

#[test]
fn steps_are_one_row() {
    let _alone = alone();
    let mut profiler = Profiler::builder().schedule(Schedule::new(0, 0, 2).unwrap()).start().unwrap();
    for _ in 0..2 {
        op("aten::add");
        profiler.step().unwrap();
    }
    let rows = profiler.key_averages().unwrap();
    assert_eq!((rows[0].key.as_str(), rows[0].count), ("ProfilerStep*", 2));
    let top = rows.table().top_level_events_only(true).header("steps only").to_string();
    assert!(top.contains("ProfilerStep*") && !top.contains("aten::add"));
    assert!(top.starts_with("====") && top.contains("\nsteps only\n"));
}

#[test]
fn an_empty_session_gives_zeros() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder().run(|_| ()).unwrap();
    let rows = profiler.key_averages().unwrap();
    assert!(rows.is_empty());
    assert_eq!((rows.table().to_string().as_str(), rows.self_cpu_time_total()), ("", 0));
    assert_eq!(rows.total_average().count, 0);
}

#[test]
fn long_names_are_cut() {
    let _alone = alone();
    let long = "x".repeat(60);
    let ((), profiler) = Profiler::builder().run(|_| record_function(&long).run(|| ())).unwrap();
    let table = profiler.key_averages().unwrap().table().to_string();
    let line = table.lines().nth(3).unwrap();
    assert!(line.starts_with(&format!("{}...  ", "x".repeat(52))), "{line}");
}

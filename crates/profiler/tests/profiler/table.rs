//! Averages and tables.

use crate::fake::{Op, alone, directory, op};
use cresset_profiler::{Averages, Grouping, Profiler, Row, Schedule, record_function};

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

#[test]
fn stacks_split_rows_at_the_call_site() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .with_stack(true)
        .run(|_| {
            (0..3).for_each(|_| record_function("same").run(|| ()));
            record_function("same").run(|| ());
        })
        .unwrap();
    assert_eq!(profiler.key_averages().unwrap().len(), 1);
    let rows = profiler.key_averages_by(Grouping::default().by_stack(1)).unwrap();
    let counts: Vec<_> = rows.iter().map(|row| (row.count, row.stack.len())).collect();
    assert_eq!(counts, [(3, 1), (1, 1)]);
    assert!(rows[0].stack[0].contains("tests/profiler/table.rs:"), "{:?}", rows[0].stack);
    let table = rows.table().max_src_column_width(None).to_string();
    assert!(table.contains("Source Location") && table.contains(&rows[1].stack[0]), "{table}");
    let deeper = profiler.key_averages_by(Grouping::default().by_stack(3)).unwrap();
    assert!(deeper.iter().any(|row| row.stack.len() > 1));
    assert!(!profiler.key_averages().unwrap().table().to_string().contains("Source Location"));
}

#[test]
fn stacks_and_flops_stand_below_their_own_titles() {
    let row = Row {
        key: "aten::mm".to_owned(),
        count: 1,
        flops: 48,
        stack: vec!["a.rs:1:a".to_owned(), "b.rs:2:b".to_owned()],
        ..Row::default()
    };
    let table = Averages::from_iter([row]).with_flops(true).table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].ends_with("  Source Location   Total FLOPs  "), "{table}");
    assert!(lines[3].ends_with("  a.rs:1:a            48.000  "), "{table}");
    assert!(lines[4].ends_with("  b.rs:2:b                    "), "{table}");
}

#[test]
fn rows_are_an_ordinary_slice() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            op("aten::b");
            (0..2).for_each(|_| op("aten::a"));
        })
        .unwrap();
    let mut rows = profiler.key_averages().unwrap();
    assert_eq!((rows.len(), rows[1].key.as_str()), (2, "aten::a"));
    rows.sort_by_key(|row| row.key.clone());
    assert_eq!(rows.first().unwrap().count, 2);
    rows.sort_by_key_name("key").unwrap();
    assert_eq!(rows.first().unwrap().key, "aten::b");
    let total: u64 = (&rows).into_iter().map(|row| row.count).sum();
    assert_eq!((total, rows.total_average().count), (3, 3));
    assert_eq!(rows.total_average().self_cpu_time_total, rows.self_cpu_time_total());
    let keys: Vec<String> = rows.into_iter().map(|row| row.key).collect();
    assert_eq!(keys, ["aten::b", "aten::a"]);
}

#[test]
fn rows_describe_their_first_event_and_add_up() {
    let _alone = alone();
    let ((), profiler) =
        Profiler::builder().run(|_| record_function("outer").run(|| op("aten::add"))).unwrap();
    let rows = profiler.key_averages().unwrap();
    assert_eq!((rows[0].scope, rows[1].scope), (7, 0));
    assert_eq!(rows[1].cpu_parent.as_deref(), Some("outer"));
    assert_eq!(rows[0].cpu_children, ["aten::add"]);
    assert_eq!((rows[1].node_id, rows[1].is_async, rows[1].is_remote), (None, false, false));
    let mut sum = rows[1].clone();
    sum += &rows[1];
    assert_eq!((sum.count, sum.cpu_time_total), (2, 2 * rows[1].cpu_time_total));
    assert_eq!(sum.cpu_time_str(), rows[1].cpu_time_str());
}

#[test]
fn overloads_split_rows_when_asked() {
    let _alone = alone();
    let body = |_: &mut Profiler| {
        Op::new("aten::add").schema("aten::add.Tensor(Tensor self, Tensor other) -> Tensor").run(|| ());
        Op::new("aten::add").schema("aten::add.Scalar(Tensor self, Scalar other) -> Tensor").run(|| ());
        op("aten::relu");
    };
    let ((), profiler) = Profiler::builder().capture_overload_names(true).run(body).unwrap();
    assert_eq!(profiler.key_averages().unwrap().len(), 2);
    let rows = profiler.key_averages_by(Grouping::default().by_overload_name(true)).unwrap();
    let overloads: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.overload_name.as_str())).collect();
    assert_eq!(overloads, [("aten::add", "Tensor"), ("aten::add", "Scalar"), ("aten::relu", "")]);
    assert!(rows.table().to_string().contains("  Overload Name  "));
    let path = directory("overloads").join("trace.json");
    profiler.export_chrome_trace(&path).unwrap();
    let trace = std::fs::read_to_string(&path).unwrap();
    assert!(trace.contains("\"aten::add.Tensor\"") && trace.contains("\"aten::relu\""));

    let ((), profiler) = Profiler::builder().run(body).unwrap();
    assert!(profiler.events().unwrap().all(|event| event.overload_name().is_none()));
}

#[test]
fn averages_can_be_exported_as_a_trace() {
    let _alone = alone();
    let path = directory("averages").join("averages.json");
    let ((), profiler) = Profiler::builder()
        .run(|_| record_function("outer").run(|| (0..3).for_each(|_| op("aten::add"))))
        .unwrap();
    let rows = profiler.key_averages().unwrap();
    rows.export_chrome_trace(&path).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let slices: Vec<_> =
        trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(slices.len(), 2);
    assert_eq!((&slices[1]["name"], &slices[1]["args"]["count"]), (&"aten::add".into(), &3.into()));
    let micros = |value: &serde_json::Value| (value.as_f64().unwrap() * 1e3).round() as u64;
    assert_eq!(micros(&slices[0]["dur"]), rows[0].cpu_time_total);
    assert_eq!(micros(&slices[1]["ts"]), rows[0].cpu_time_total);
}

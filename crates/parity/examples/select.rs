//! Makes a small selection of recorded files: `select FROM TO FIRST SECOND` keeps, per file and
//! element type, the FIRST (tier 1) or SECOND (other tiers) smallest cases, and all errors.

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, first, second] = &arguments[..] else {
        return Err("usage: select FROM TO FIRST SECOND".into());
    };
    let (from, to) = (Path::new(from), Path::new(to));
    let counts = [first.parse()?, second.parse()?];
    std::fs::create_dir_all(to)?;
    let (mut cases, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let is_cases = path.extension().is_some_and(|extension| extension == "json")
            && path.file_stem().is_some_and(|stem| stem != "index");
        if is_cases {
            let (more, size) = select(&path, to, counts)?;
            cases += more;
            bytes += size;
        }
    }
    println!("{cases} cases, {bytes} bytes");
    Ok(())
}

fn select(path: &Path, to: &Path, [first, second]: [usize; 2]) -> Result<(usize, usize), Box<dyn Error>> {
    let mut json: Json = serde_json::from_slice(&std::fs::read(path)?)?;
    let bytes = std::fs::read(path.with_extension("safetensors"))?;
    let tensors = SafeTensors::deserialize(&bytes)?;
    let limit = if json["tier"] == 1 { first } else { second };
    let mut cases = json["cases"].as_array().cloned().unwrap_or_default();
    let order: BTreeMap<String, usize> =
        cases.iter().enumerate().map(|(i, case)| (case["id"].to_string(), i)).collect();
    cases.sort_by_key(|case| size(case, &tensors));
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    cases.retain(|case| {
        let count = taken.entry(case["dtype"].to_string()).or_default();
        *count += 1;
        *count <= limit
    });
    cases.sort_by_key(|case| order[&case["id"].to_string()]);
    let count = cases.len();
    json["cases"] = cases.into();
    json["skipped"] = Json::Null;
    let mut keys = BTreeSet::new();
    collect(&json["cases"], &mut keys);
    collect(&json["errors"], &mut keys);
    let views: Vec<(&str, TensorView<'_>)> = keys
        .iter()
        .map(|key| Ok((key.as_str(), tensors.tensor(key)?)))
        .collect::<Result<_, safetensors::SafeTensorError>>()?;
    let (text, data) = (serde_json::to_vec(&json)?, safetensors::serialize(views, None)?);
    let written = text.len() + data.len();
    let target = to.join(path.file_name().unwrap_or_default());
    std::fs::write(&target, text)?;
    std::fs::write(target.with_extension("safetensors"), data)?;
    Ok((count, written))
}

/// Bytes of the tensors that a case speaks of.
fn size(case: &Json, tensors: &SafeTensors<'_>) -> usize {
    let mut keys = BTreeSet::new();
    collect(case, &mut keys);
    keys.iter().filter_map(|key| Some(tensors.tensor(key).ok()?.data().len())).sum()
}

/// The names of tensors, wherever they stand.
fn collect(json: &Json, keys: &mut BTreeSet<String>) {
    match json {
        Json::Array(list) => list.iter().for_each(|json| collect(json, keys)),
        Json::Object(members) => {
            for (name, json) in members {
                match (name.as_str(), json) {
                    ("t" | "cot", Json::String(key)) => drop(keys.insert(key.clone())),
                    // The state of a module: names of tensors by the name of the parameter.
                    ("state" | "state_after", Json::Object(state)) => {
                        keys.extend(state.values().filter_map(Json::as_str).map(str::to_owned));
                    }
                    _ => collect(json, keys),
                }
            }
        }
        _ => {}
    }
}

//! Files of recorded answers: a `.json` of cases beside a `.safetensors` of the tensors in them.

use crate::value::Value;
use cresset_tensor::{DType, Element, Tensor, bf16, f16};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The format that this reader knows.
const FORMAT: &str = "golden-v1";

/// One file of cases for one operator.
pub struct Golden {
    /// The operator, as torch calls it.
    pub op: String,
    /// Which form of it, e.g. `floor_rounding`; often empty.
    pub variant: String,
    /// 1 for operators that everybody needs.
    pub tier: u64,
    /// The family, e.g. `reduction`.
    pub category: String,
    /// Cases that must give an answer.
    pub cases: Vec<Case>,
    /// Cases that must be refused.
    pub errors: Vec<ErrorCase>,
    /// `[relative, absolute]` per element type.
    pub(crate) tolerances: HashMap<DType, [f64; 2]>,
    tensors: HashMap<String, Tensor>,
}

/// What is passed to an operator.
#[derive(Clone, Default)]
pub(crate) struct Passed {
    pub(crate) args: Vec<Value>,
    pub(crate) kwargs: Vec<(String, Value)>,
    /// Whether all tensors of one type lay in one memory.
    pub(crate) shared: bool,
}

/// One call and its answer.
pub struct Case {
    /// Names the case.
    pub id: String,
    pub(crate) passed: Passed,
    pub(crate) outputs: Vec<Leaf>,
    /// Gradient of each input that requires one, by the input's number.
    pub(crate) grads: Vec<(usize, Expected)>,
    pub(crate) second: Option<Second>,
    pub(crate) in_place: Option<InPlace>,
    pub(crate) returns_input: bool,
}

/// A call that must be refused.
pub struct ErrorCase {
    /// Names the case.
    pub id: String,
    pub(crate) passed: Passed,
    /// Whether torch refused the types of the arguments.
    pub(crate) of_types: bool,
}

/// A tensor of the answer.
pub(crate) struct Leaf {
    pub(crate) expected: Expected,
    pub(crate) view: bool,
    /// The input whose memory it shares.
    pub(crate) alias: Option<usize>,
    pub(crate) strides: Option<Vec<usize>>,
    /// The gradient that is sent back from here.
    pub(crate) cotangent: Option<String>,
}

/// A tensor to compare with; none where torch gives none.
pub(crate) struct Expected {
    pub(crate) key: Option<String>,
    /// Torch's own rounding error.
    pub(crate) noise: f64,
    /// Whether torch itself is far off, so that values prove nothing.
    pub(crate) ill: bool,
}

/// Gradients of gradients.
pub(crate) struct Second {
    pub(crate) directions: Vec<(usize, String)>,
    pub(crate) inputs: Vec<(usize, Expected)>,
    pub(crate) cotangents: Vec<(usize, Expected)>,
}

pub(crate) enum InPlace {
    /// The change gives the values of the answer, and counts as so many versions.
    Works {
        bump: Option<u64>,
    },
    Refused,
}

/// A file that cannot be read, and why.
#[derive(Debug)]
pub struct BadFile {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for BadFile {}

impl BadFile {
    pub(crate) fn new(path: &Path, reason: String) -> BadFile {
        BadFile { path: path.to_owned(), reason }
    }
}

impl Golden {
    /// Reads `path`, a `.json`, and the `.safetensors` beside it. `None` if it is a file of the
    /// format without cases of operators, such as an index.
    ///
    /// # Errors
    /// If a file is missing or not of the format.
    pub fn read(path: &Path) -> Result<Option<Golden>, BadFile> {
        let Some((json, golden)) = Golden::open(path, "opinfo")? else { return Ok(None) };
        golden.fill(&json).map(Some).map_err(|reason| BadFile::new(path, reason))
    }

    /// A file of the given suite: its structure, and its tensors and tolerances without cases.
    pub(crate) fn open(path: &Path, suite: &str) -> Result<Option<(Json, Golden)>, BadFile> {
        let bad = |reason: String| BadFile::new(path, reason);
        let text = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
        let json: Json = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        if json["format"] != FORMAT {
            return Err(bad(format!("format is {}, expected {FORMAT:?}", json["format"])));
        }
        if json["suite"] != suite {
            return Ok(None);
        }
        let bytes =
            std::fs::read(path.with_extension("safetensors")).map_err(|error| bad(error.to_string()))?;
        let golden = parse(&json, &bytes).map_err(bad)?;
        Ok(Some((json, golden)))
    }

    /// With the cases of operators that are in `json`.
    fn fill(mut self, json: &Json) -> Result<Golden, String> {
        self.op = text(&json["op"])?;
        self.variant = text(&json["variant"])?;
        self.tier = json["tier"].as_u64().unwrap_or(0);
        self.category = json["category"].as_str().unwrap_or("other").to_owned();
        self.cases = told_all(&json["cases"], parse_case)?;
        self.errors = told_all(&json["errors"], parse_error)?;
        Ok(self)
    }

    /// The operator with its form, e.g. `div.floor_rounding`: what the file is called.
    pub fn name(&self) -> String {
        if self.variant.is_empty() { self.op.clone() } else { format!("{}.{}", self.op, self.variant) }
    }

    /// A tensor of the file. Do not change it: it is shared.
    pub(crate) fn tensor(&self, key: &str) -> Result<&Tensor, String> {
        self.tensors.get(key).ok_or_else(|| format!("there is no tensor {key:?}"))
    }
}

fn parse(json: &Json, bytes: &[u8]) -> Result<Golden, String> {
    let mut tolerances = HashMap::new();
    for (name, pair) in json["tol"].as_object().ok_or("there are no tolerances")? {
        let number = |i: usize| pair[i].as_f64().ok_or_else(|| format!("tolerance of {name} is {pair}"));
        tolerances.insert(dtype(name)?, [number(0)?, number(1)?]);
    }
    Ok(Golden {
        op: String::new(),
        variant: String::new(),
        tier: 0,
        category: "other".to_owned(),
        cases: Vec::new(),
        errors: Vec::new(),
        tolerances,
        tensors: parse_tensors(bytes)?,
    })
}

/// Parses a list of cases; an error names the case.
pub(crate) fn told_all<T>(list: &Json, parse: fn(&Json) -> Result<T, String>) -> Result<Vec<T>, String> {
    let told = |json: &Json| parse(json).map_err(|reason| format!("case {}: {reason}", json["id"]));
    list.as_array().into_iter().flatten().map(told).collect()
}

fn parse_case(json: &Json) -> Result<Case, String> {
    let mut outputs = Vec::new();
    collect_leaves(&json["out"], &mut outputs)?;
    let in_place = match json["inplace"].as_str() {
        None => None,
        Some("ok" | "differs") => Some(InPlace::Works { bump: json["inplace_version_bump"].as_u64() }),
        Some(_) => Some(InPlace::Refused),
    };
    Ok(Case {
        id: text(&json["id"])?,
        passed: parse_passed(json)?,
        outputs,
        grads: numbered(&json["grads"], "k")?,
        second: if json["gg"].is_null() { None } else { Some(parse_second(&json["gg"])?) },
        in_place,
        returns_input: json["returns_input"] == true,
    })
}

fn parse_error(json: &Json) -> Result<ErrorCase, String> {
    let of_types = json["raised"][0] == "TypeError" || json["raised"][0] == "AttributeError";
    Ok(ErrorCase { id: text(&json["id"])?, passed: parse_passed(json)?, of_types })
}

fn parse_passed(json: &Json) -> Result<Passed, String> {
    let args = json["args"].as_array().ok_or("there are no args")?;
    let args = args.iter().map(Value::parse).collect::<Result<_, _>>()?;
    let mut kwargs = Vec::new();
    for (name, value) in json["kwargs"].as_object().into_iter().flatten() {
        kwargs.push((name.clone(), Value::parse(value)?));
    }
    Ok(Passed { args, kwargs, shared: json["inputs_alias"] == true })
}

fn parse_second(json: &Json) -> Result<Second, String> {
    let directions = numbered(&json["v"], "k")?;
    let directions = directions.into_iter().filter_map(|(k, expected)| Some((k, expected.key?))).collect();
    Ok(Second { directions, inputs: numbered(&json["ins"], "k")?, cotangents: numbered(&json["cots"], "o")? })
}

/// Tensors by the number of what they belong to.
pub(crate) fn numbered(json: &Json, number: &str) -> Result<Vec<(usize, Expected)>, String> {
    let each = |json: &Json| Ok((index(&json[number])?, parse_expected(json)?));
    json.as_array().into_iter().flatten().map(each).collect()
}

pub(crate) fn parse_expected(json: &Json) -> Result<Expected, String> {
    let key = if json["t"].is_null() { None } else { Some(text(&json["t"])?) };
    Ok(Expected { key, noise: json["noise"][0].as_f64().unwrap_or(0.0), ill: json["ill"] == true })
}

/// The tensors of an answer, in order; answers of another kind are refused.
pub(crate) fn collect_leaves(json: &Json, leaves: &mut Vec<Leaf>) -> Result<(), String> {
    if let Some(list) = ["l", "u"].iter().find_map(|kind| json[kind].as_array()) {
        return list.iter().try_for_each(|json| collect_leaves(json, leaves));
    }
    if json["t"].is_null() {
        return Err(format!("the answer {json} is not made of tensors"));
    }
    leaves.push(Leaf {
        expected: parse_expected(json)?,
        view: json["view"] == true,
        alias: json["alias"].as_u64().map(|k| k as usize),
        strides: json["stride"].as_array().map(|list| list.iter().map(index).collect()).transpose()?,
        cotangent: json["cot"].as_str().map(str::to_owned),
    });
    Ok(())
}

pub(crate) fn text(json: &Json) -> Result<String, String> {
    json.as_str().map(str::to_owned).ok_or_else(|| format!("expected a text, found {json}"))
}

pub(crate) fn index(json: &Json) -> Result<usize, String> {
    json.as_u64().and_then(|n| n.try_into().ok()).ok_or_else(|| format!("expected an index, found {json}"))
}

/// The element type of a name, e.g. `f32`.
pub(crate) fn dtype(name: &str) -> Result<DType, String> {
    let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    found.ok_or_else(|| format!("unknown element type {name:?}"))
}

fn parse_tensors(bytes: &[u8]) -> Result<HashMap<String, Tensor>, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors = HashMap::new();
    for (name, view) in file.tensors() {
        let tensor = parse_tensor(view.dtype(), view.shape(), view.data());
        tensors.insert(name.clone(), tensor.map_err(|reason| format!("tensor {name}: {reason}"))?);
    }
    Ok(tensors)
}

fn parse_tensor(dtype: Dtype, shape: &[usize], bytes: &[u8]) -> Result<Tensor, String> {
    fn read<T: Element, const N: usize>(
        bytes: &[u8],
        shape: &[usize],
        element: fn([u8; N]) -> T,
    ) -> Result<Tensor, String> {
        let (chunks, _) = bytes.as_chunks::<N>();
        let elements: Vec<T> = chunks.iter().copied().map(element).collect();
        Tensor::from_slice(&elements, shape).map_err(|error| error.to_string())
    }
    match dtype {
        Dtype::BOOL => read(bytes, shape, |[byte]| byte != 0),
        Dtype::U8 => read(bytes, shape, u8::from_le_bytes),
        Dtype::I8 => read(bytes, shape, i8::from_le_bytes),
        Dtype::I16 => read(bytes, shape, i16::from_le_bytes),
        Dtype::I32 => read(bytes, shape, i32::from_le_bytes),
        Dtype::I64 => read(bytes, shape, i64::from_le_bytes),
        Dtype::F16 => read(bytes, shape, f16::from_le_bytes),
        Dtype::BF16 => read(bytes, shape, bf16::from_le_bytes),
        Dtype::F32 => read(bytes, shape, f32::from_le_bytes),
        Dtype::F64 => read(bytes, shape, f64::from_le_bytes),
        other => Err(format!("elements of {other:?} are not supported")),
    }
}

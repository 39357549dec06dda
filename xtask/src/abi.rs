//! Our tables of C functions against the vendor's headers, and against what the shared library exports.
//!
//! Linking proves nothing about prototypes, since symbols in C carry no types. So a C++ file is made
//! from the tables, whose templates turn the type of each declared function into the same short text that
//! the tables have, and compare the two; constants and structures go into the same file. It is compiled
//! against the headers that come with the wheel of `torch_npu`, which are read there and kept nowhere.

use crate::{Result, cache, toolkit};
use cresset_acl::header::{self, Constant};
use cresset_acl::signature::{FUNCTIONS, OPERATORS, Signature};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which release of torch_npu to take the headers from.
    #[arg(long, default_value = "2.14.0")]
    version: String,
    /// Headers that are there already: a folder with acl/inc and hccl/inc.
    #[arg(long)]
    headers: Option<PathBuf>,
    /// The shared library to look into, instead of building it.
    #[arg(long)]
    library: Option<PathBuf>,
}

/// The headers that declare what we declare.
const INCLUDES: &[&str] = &[
    "acl/acl.h",
    "acl/acl_op_compiler.h",
    "acl/acl_prof.h",
    "acl/acl_rt_memory_soma.h",
    "profiling/aprof_pub.h",
    "hccl/hccl.h",
];

/// Turns types into texts, compares, and counts.
const PRELUDE: &str = r#"
#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>

static int differences = 0;
static int compared = 0;

template <class T> std::string text() {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_void_v<U>) return "void";
    else if constexpr (std::is_pointer_v<U>) return "p";
    else if constexpr (std::is_same_v<U, bool>) return "bool";
    else if constexpr (std::is_enum_v<U>) return sizeof(U) == 4 ? "i32" : "an enum of another size";
    else if constexpr (std::is_floating_point_v<U>) return "f" + std::to_string(sizeof(U) * 8);
    else if constexpr (std::is_integral_v<U>)
        return (std::is_signed_v<U> ? "i" : "u") + std::to_string(sizeof(U) * 8);
    else return sizeof(U) == 4 ? "i32" : "a structure by value";
}

template <class F> struct Signature;
template <class R, class... A> struct Signature<R (*)(A...)> {
    static std::string text() {
        std::string arguments;
        ((arguments += (arguments.empty() ? "" : ",") + ::text<A>()), ...);
        return ::text<R>() + "(" + arguments + ")";
    }
};
template <class R, class... A> struct Signature<R (*)(A..., ...)> : Signature<R (*)(A...)> {};

static void same(const char *name, const std::string &ours, const std::string &theirs) {
    ++compared;
    if (ours == theirs) return;
    ++differences;
    std::printf("%s: we declare %s, the header declares %s\n", name, ours.c_str(), theirs.c_str());
}

static void same(const char *name, long long ours, long long theirs) {
    same(name, std::to_string(ours), std::to_string(theirs));
}
"#;

pub(crate) fn run(options: &Options) -> Result {
    let include = match &options.headers {
        Some(folder) => Some(folder.clone()),
        None => cache::headers(&options.version)?,
    };
    let declared = include.map_or(Ok(0), |include| compare(&include, &options.version))?;
    let differences = declared + exports(options)?;
    if differences > 0 {
        return Err(format!("{differences} differences").into());
    }
    println!("0 differences");
    Ok(())
}

/// Compiles and runs the comparison; gives the number of differences.
fn compare(include: &Path, version: &str) -> Result<usize> {
    let declared = words(include)?;
    let (known, unknown): (Vec<&Signature>, Vec<&Signature>) =
        FUNCTIONS.iter().copied().flatten().partition(|function| declared.contains(function.name));
    let folder = cache::folder("abi")?;
    let (source, program) = (folder.join("abi.cpp"), folder.join("abi"));
    fs::write(&source, program_text(&known)?)?;
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
    // `hccl.h` includes a file of its own by the path it has in torch_npu's sources.
    let third_party = include.parent().ok_or("headers lie in a folder")?;
    let compile = Command::new(&compiler)
        .args(["-std=c++17", "-w", "-o"])
        .args([&program, &source])
        .args(["acl/inc", "hccl/inc"].map(|inner| format!("-I{}", include.join(inner).display())))
        .arg(format!("-I{}", third_party.display()))
        .status();
    match compile {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("{compiler} failed with {status} on {}", source.display()).into()),
        Err(error) => {
            println!("headers not compared: cannot run {compiler}: {error}");
            return Ok(0);
        }
    }
    let output = Command::new(&program).output()?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    println!(
        "{} functions, {} constants, {} structures compared with the headers of torch_npu {version}",
        known.len(),
        header::CONSTANTS.len() + header::codes().count(),
        header::STRUCTURES.len()
    );
    println!("{} functions are in no public header: {}", unknown.len(), families(&unknown));
    output.status.code().map(|code| code as usize).ok_or_else(|| "the comparison was killed".into())
}

fn program_text(functions: &[&Signature]) -> Result<String> {
    let mut text = String::new();
    for file in INCLUDES {
        writeln!(text, "#include \"{file}\"")?;
    }
    text.push_str(PRELUDE);
    text.push_str("\nint main() {\n");
    for function in functions {
        let (name, ours) = (function.name, function.text());
        writeln!(text, "    same(\"{name}\", \"{ours}\", Signature<decltype(&{name})>::text());")?;
    }
    let constants = header::CONSTANTS.iter().map(|Constant { c, value }| (*c, *value));
    for (c, value) in constants.chain(header::codes().map(|Constant { c, value }| (c, value))) {
        writeln!(text, "    same(\"{c}\", {value}LL, static_cast<long long>({c}));")?;
    }
    for structure in header::STRUCTURES {
        let c = structure.c;
        if let Some(size) = structure.size {
            writeln!(text, "    same(\"sizeof({c})\", {size}LL, static_cast<long long>(sizeof({c})));")?;
        }
        for (field, offset) in structure.fields {
            let theirs = format!("static_cast<long long>(offsetof({c}, {field}))");
            writeln!(text, "    same(\"{c}.{field}\", {offset}LL, {theirs});")?;
        }
    }
    text.push_str("    return differences > 100 ? 100 : differences;\n}\n");
    Ok(text)
}

/// Every word in the headers.
fn words(include: &Path) -> Result<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    for folder in ["acl/inc/acl", "acl/inc/acl/error_codes", "acl/inc/profiling", "hccl/inc/hccl"] {
        let folder = include.join(folder);
        let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for file in files {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "h") {
                let text = fs::read_to_string(&path)?;
                let split = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                words.extend(split.map(str::to_owned));
            }
        }
    }
    Ok(words)
}

/// `aclCreate… (3), mspti… (9)`: what begins alike, counted.
fn families(functions: &[&Signature]) -> String {
    let family = |name: &str| {
        ["mspti", "mstx", "Hccl", "aclrt", "aclnn", "acl", "rt"]
            .into_iter()
            .find(|prefix| name.starts_with(prefix))
            .unwrap_or("others")
    };
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for function in functions {
        let family = family(function.name);
        match counts.iter_mut().find(|(name, _)| *name == family) {
            Some((_, count)) => *count += 1,
            None => counts.push((family, 1)),
        }
    }
    counts.iter().map(|(name, count)| format!("{name}… ({count})")).collect::<Vec<_>>().join(", ")
}

/// What the shared library exports against the tables; gives the number of differences.
fn exports(options: &Options) -> Result<usize> {
    let library = match &options.library {
        Some(path) => path.clone(),
        None => toolkit::build(false)?,
    };
    let listed = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output();
    let Ok(listed) = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()) else {
        println!("exports not compared: cannot run nm");
        return Ok(0);
    };
    let exported: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let declared = toolkit::functions();
    let missing: Vec<&String> = declared.iter().filter(|name| !exported.contains(name.as_str())).collect();
    let prefixes = ["acl", "Hccl", "mspti", "mstx", "Msprof", "rt"];
    let is_theirs = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let extra: Vec<&&str> =
        exported.iter().filter(|name| is_theirs(name) && !declared.contains(**name)).collect();
    let operators: usize = OPERATORS.iter().map(|table| table.len()).sum();
    for name in &missing {
        println!("{name}: in the tables, but not exported");
    }
    for name in &extra {
        println!("{name}: exported, but not in the tables");
    }
    println!("{} exports compared with the tables, of {} operators", declared.len(), operators);
    Ok(missing.len() + extra.len())
}

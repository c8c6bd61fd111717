//! Says where libplue is: in `PLUE_LIB_DIR`, or where pkg-config has it. With `PLUE_STATIC` it is
//! linked statically.

use std::env;
use std::process::Command;

fn main() {
    for name in ["PLUE_LIB_DIR", "PLUE_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if let Some(folder) = env::var("PLUE_LIB_DIR").ok().or_else(ask_pkg_config) {
        println!("cargo:rustc-link-search=native={folder}");
    }
    let kind = if env::var_os("PLUE_STATIC").is_some() { "static" } else { "dylib" };
    println!("cargo:rustc-link-lib={kind}=plue");
}

fn ask_pkg_config() -> Option<String> {
    let output = Command::new("pkg-config").args(["--variable=libdir", "plue"]).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !folder.is_empty()).then_some(folder)
}

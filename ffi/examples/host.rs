//! A host in Rust, with the crate of ffi/rust: host [tool [params_json]]

use std::process::ExitCode;

use plue::{Call, Error, Library, Options};

fn run() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let tool = arguments.get(1).map_or("echo", String::as_str);
    let params = arguments.get(2).map_or("{}", String::as_str);
    let _library = Library::new(&Options::default())?;
    println!("tools: {:.70}...", plue::tools()?);
    let call = Call::new(tool).params(params).session_id("session-1");
    println!(
        "result: {}",
        call.on_event(|json| eprintln!("event: {json}")).wait()?
    );
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failure: {error}");
            ExitCode::FAILURE
        }
    }
}

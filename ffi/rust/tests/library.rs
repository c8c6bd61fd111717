//! Options, in a process of their own.

use std::time::Duration;

use plue::{Call, Code, Library, Options};

#[test]
fn the_tools_are_started_with_options_and_ended() {
    let mut options = Options {
        config_json: Some(r#"{"role":"user","config":{"greet":{"word":"hi"}}}"#.into()),
        abort_grace: Some(Duration::from_millis(500)),
        ..Options::default()
    };
    {
        let library = Library::new(&options).unwrap();
        library.start().unwrap();
        assert_eq!(Call::new("greet").wait().unwrap(), r#"{"word":"hi"}"#);
        let error = Library::new(&Options::default()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
    options.sidecar = vec!["/nowhere/plue-sidecar".into()];
    let _library = Library::new(&options).unwrap();
    assert_eq!(plue::tools().unwrap_err().code(), Code::RuntimeUnavailable);
}

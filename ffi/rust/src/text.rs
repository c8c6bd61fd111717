//! Converts strings for C and from C.

use std::ffi::{CStr, CString};
use std::os::raw::c_char;
use std::ptr;

use crate::{sys, Code, Error};

/// A string for C, which reads it up to a NUL.
pub fn to_c(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| {
        Error::new(Code::InvalidArgument, "Cannot pass a string to libplue: it has a NUL")
    })
}

pub fn to_c_or_null(text: Option<&str>) -> Result<Option<CString>, Error> {
    text.map(to_c).transpose()
}

pub fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

/// A string for a model, in which a NUL is replaced.
pub fn to_c_lossy(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Copies a string of libplue, which is UTF-8; NULL is empty.
///
/// # Safety
/// `text` is NULL, or ends with a NUL.
pub unsafe fn copy(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// Copies a string that was returned to be freed, and frees it.
///
/// # Safety
/// libplue returned `json`, which is not freed yet.
pub unsafe fn take(json: *mut c_char) -> String {
    let text = copy(json);
    sys::plue_free_json(json);
    text
}

//! `--attach`: an address as it was given, or a local file as a `data:` URL.

use std::fs::File;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::input::bounded;
use crate::domain::Attachment;

/// The types of images that models can read.
const READABLE: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns the attachment for an address or a file.
///
/// # Errors
/// A sentence for the user: the file cannot be read, or it is not an image that models support.
pub(super) fn attachment(given: &str) -> Result<Attachment, String> {
    if given.starts_with("https://") || given.starts_with("http://") {
        let path = given.split(['?', '#']).next();
        let filename = path.and_then(|path| path.rsplit('/').next());
        let filename = filename.filter(|name| !name.is_empty());
        return Ok(Attachment {
            filename: filename.unwrap_or("attachment").to_owned(),
            url: given.to_owned(),
            content_type: None,
        });
    }
    let path = Path::new(given);
    let media_type = mime_guess::from_path(path).first_raw();
    let Some(media_type) = media_type.filter(|kind| READABLE.contains(kind)) else {
        let why = "only images (png, jpg, gif, webp) can be attached from disk";
        return Err(format!("{given}: {why}"));
    };
    let file = File::open(path).map_err(|error| error.to_string());
    let bytes = file.and_then(bounded);
    let bytes = bytes.map_err(|why| format!("{given}: {why}"))?;
    let filename = path.file_name().map(|name| name.to_string_lossy());
    Ok(Attachment {
        filename: filename.map_or_else(|| given.to_owned(), Into::into),
        url: format!("data:{media_type};base64,{}", STANDARD.encode(bytes)),
        content_type: Some(media_type.to_owned()),
    })
}

//! Detects the language of a text.

use whatlang::Script;

/// The least confidence of whatlang in a language that the other detector does not know.
const MIN_ALONE: f64 = 0.25;
/// The least confidence in a language of the Latin script on which both agree.
const MIN_AGREED: f64 = 0.1;

/// Returns the code of a text's language, of ISO 639-3; `None` if it is not certain. Two detectors
/// must agree on it, because each of them misreads many texts of a few words. Of a language that
/// whichlang does not know, such as Polish, whatlang must be sure.
pub fn language_code(text: &str) -> Option<&'static str> {
    let found = whatlang::detect(text)?;
    let code = found.lang().code();
    let mut known = whichlang::LANGUAGES.iter();
    let is_sure = if known.any(|lang| lang.three_letter_code() == code) {
        let agreed = whichlang::detect_language(text).three_letter_code() == code;
        agreed && (found.script() != Script::Latin || found.confidence() >= MIN_AGREED)
    } else {
        found.confidence() >= MIN_ALONE
    };
    is_sure.then_some(code)
}

/// Returns the code of the likeliest of some languages; `None` for a text in Latin letters, which
/// many languages use.
pub fn likeliest<'c>(text: &str, codes: impl IntoIterator<Item = &'c str>) -> Option<&'static str> {
    if is_latin(text) {
        return None;
    }
    let known = codes.into_iter().filter_map(whatlang::Lang::from_code);
    let found = whatlang::Detector::with_allowlist(known.collect()).detect_lang(text);
    found.map(|lang| lang.code())
}

/// True if a detector reads a text as English, and none is sure of another language.
pub fn is_english(text: &str) -> bool {
    let is_read = || {
        let found = whatlang::detect(text);
        found.is_some_and(|found| found.lang().code() == "eng")
            || whichlang::detect_language(text).three_letter_code() == "eng"
    };
    language_code(text).is_none_or(|code| code == "eng") && is_read()
}

/// True if most letters of a text are Latin, or it has no letters.
pub fn is_latin(text: &str) -> bool {
    whatlang::detect_script(text).is_none_or(|script| script == Script::Latin)
}

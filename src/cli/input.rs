//! What a command reads: a text from standard input, a file, or lines of JSON. All have a bound, so
//! that no input fills the memory.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _, Read};
use std::path::Path;

use rustix::fs::FileType;

use super::exit::{Exit, fail, failing};

/// Maximum size of a text or a file in MiB. The limits of a message and of a request are far below.
const MAX_TEXT_MIB: u64 = 16;

/// Maximum length of a line in MiB: one exported run, or one request with its recorded outputs.
const MAX_LINE_MIB: u64 = 64;

const MIB: u64 = 1024 * 1024;

const STANDARD_INPUT: &str = "-";

/// Returns the text of the argument. For `-` it reads standard input, and also without an argument,
/// unless that is a terminal.
pub(super) fn text_of(given: Option<&str>, what: &str) -> Result<String, String> {
    let is_terminal = std::io::stdin().is_terminal();
    match given {
        Some(text) if text != STANDARD_INPUT => return Ok(text.to_owned()),
        None if is_terminal => {
            return Err(format!(
                "no {what}: give it as an argument or on standard input"
            ));
        }
        _ => {}
    }
    if is_terminal {
        tell!("reading the {what}: end it with Ctrl-D on a new line");
    }
    bounded(std::io::stdin().lock())
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned()))
        .map_err(|why| format!("standard input: {why}"))
}

/// Returns the text of the argument, and after it that of standard input if `-` follows the
/// argument. Without the `-` it warns of a pipe that has data. It does not read it: a loop over lines
/// (`while read`) would lose the rest of them.
pub(super) fn text_with_input(
    given: Option<&str>,
    follows: bool,
    what: &str,
) -> Result<String, String> {
    let text = text_of(given, what)?;
    if follows {
        let input = text_of(Some(STANDARD_INPUT), what)?;
        return Ok(format!("{text}\n\n{input}"));
    }
    if given.is_some_and(|given| given != STANDARD_INPUT) && has_piped_input() {
        tell!("standard input is not read: add - after the {what} to send it too");
    }
    Ok(text)
}

/// True if standard input is a pipe with data in it.
fn has_piped_input() -> bool {
    let input = std::io::stdin();
    let is_pipe = rustix::fs::fstat(&input)
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Fifo);
    is_pipe && rustix::io::ioctl_fionread(&input).is_ok_and(|bytes| bytes > 0)
}

/// Reads all of a text or a file.
///
/// # Errors
/// What the system says, or that there is more than the bound.
pub(super) fn bounded(input: impl Read) -> Result<Vec<u8>, String> {
    let (mut bytes, most) = (vec![], MAX_TEXT_MIB * MIB);
    let read = input.take(most + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| error.to_string())?;
    if read as u64 > most {
        return Err(format!("has more than {MAX_TEXT_MIB} MiB"));
    }
    Ok(bytes)
}

/// A line, or why it is not read. The lines after it can still be read.
pub(super) type Line = Result<String, String>;

/// Opens a file of JSON Lines, or standard input for `-`. Returns the lines as [`lines`].
///
/// # Errors
/// The exit code, after the reason was printed.
pub(super) fn json_lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<(u64, Line), Exit>> + use<>, Exit> {
    let shown = path.display();
    let input: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else if path.is_dir() {
        let why = format!("{shown} is a folder, and no file of JSON Lines");
        return Err(fail(Exit::Usage, why));
    } else {
        let file = File::open(path).map_err(|error| format!("cannot read {shown}: {error}"));
        Box::new(BufReader::new(file.map_err(failing(Exit::Refused))?))
    };
    Ok(lines(input))
}

/// Returns the lines of an input that are not empty, each with its number from 1.
fn lines(mut input: impl BufRead) -> impl Iterator<Item = Result<(u64, Line), Exit>> {
    let all = std::iter::from_fn(move || line(&mut input).transpose());
    let is_empty = |line: &std::io::Result<Line>| matches!(line, Ok(Ok(line)) if line.is_empty());
    let filled = (1..).zip(all).filter(move |(_, line)| !is_empty(line));
    filled.map(|(number, line)| match line {
        Ok(line) => Ok((number, line)),
        Err(error) => Err(fail(Exit::Unexpected, format!("line {number}: {error}"))),
    })
}

/// Reads the next line, without a byte order mark and the spaces around it. `None` is the end.
fn line(input: &mut impl BufRead) -> std::io::Result<Option<Line>> {
    let (mut bytes, most) = (vec![], MAX_LINE_MIB * MIB);
    if input.by_ref().take(most).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 == most && !bytes.ends_with(b"\n") {
        input.skip_until(b'\n')?;
        return Ok(Some(Err(format!("it has more than {MAX_LINE_MIB} MiB"))));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| "it is not UTF-8".to_owned());
    let text = text.map(|text| text.trim_start_matches('\u{feff}').trim().to_owned());
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_or_no_text_does_not_hide_the_others() {
        let long = std::io::repeat(b'x').take(MAX_LINE_MIB * MIB + 5);
        let input = b"\xef\xbb\xbf{}\n\n \n\xff\n"
            .chain(long)
            .chain(&b"\n [] \r\n1"[..]);
        let expected = [
            (1, Ok("{}".to_owned())),
            (4, Err("it is not UTF-8".to_owned())),
            (5, Err("it has more than 64 MiB".to_owned())),
            (6, Ok("[]".to_owned())),
            (7, Ok("1".to_owned())),
        ];
        let read: Result<Vec<_>, _> = lines(BufReader::new(input)).collect();
        assert_eq!(read.unwrap(), expected);
    }

    #[test]
    fn an_input_without_an_end_is_refused_at_the_bound() {
        let most = MAX_TEXT_MIB * MIB;
        let whole = bounded(std::io::repeat(b'x').take(most));
        assert_eq!(whole.map(|it| it.len() as u64), Ok(most));
        let endless = bounded(std::io::repeat(b'x'));
        assert_eq!(endless, Err("has more than 16 MiB".to_owned()));
    }
}

//! Server-sent events as they come from a provider, or from another Conclave: lines into events, whatever the pieces they
//! come in. A server that sends a line without end is cut off.

/// The most bytes of one event.
const MAX: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamEvent {
    /// Empty if it has no name.
    pub name: String,
    pub data: String,
    /// The last id that was sent, with this event or before it.
    pub id: String,
}

/// The server sent more than an event may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {MAX} bytes")]
pub struct TooLong;

/// Reads a stream piece by piece.
#[derive(Debug, Default)]
pub struct StreamReader {
    line: Vec<u8>,
    /// The last byte was a carriage return, to which a line feed may still belong.
    after_return: bool,
    /// A line was read: what comes now is no byte order mark.
    begun: bool,
    name: String,
    data: Option<String>,
    id: String,
}

impl StreamReader {
    /// The events that are complete with this piece.
    ///
    /// # Errors
    /// When an event has too many bytes; nothing more is to be read then.
    pub fn read(&mut self, piece: &[u8]) -> Result<Vec<StreamEvent>, TooLong> {
        let mut events = vec![];
        for byte in piece {
            match byte {
                b'\n' if self.after_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(*byte),
            }
            self.after_return = *byte == b'\r';
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > MAX {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<StreamEvent> {
        let line = std::mem::take(&mut self.line);
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line)
        } else {
            &line
        };
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return self.data.take().map(|data| StreamEvent {
                name,
                data,
                id: self.id.clone(),
            });
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            // A comment, the pause before connecting again, or a field that is not known.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &str) -> Vec<(String, String, String)> {
        let events = StreamReader::default().read(stream.as_bytes()).unwrap();
        events
            .into_iter()
            .map(|event| (event.name, event.data, event.id))
            .collect()
    }

    #[test]
    fn lines_become_events() {
        let event =
            |name: &str, data: &str, id: &str| (name.to_owned(), data.to_owned(), id.to_owned());
        let stream = "event: run\ndata: {}\nid: 1\n\n: still working\n\nevent:reply\r\ndata: a\rdata:b\n\nid: 3\n\ndata\n\n";
        let expected = [
            event("run", "{}", "1"),
            event("reply", "a\nb", "1"),
            event("", "", "3"),
        ];
        assert_eq!(read(stream), expected);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(
            read("\u{feff}data: a\n\n\u{feff}data: b\n\n"),
            [(String::new(), "a".into(), String::new())]
        );
    }

    #[test]
    fn a_line_without_end_is_cut_off() {
        let mut reader = StreamReader::default();
        let piece = vec![b'x'; MAX / 2];
        assert_eq!(
            (reader.read(&piece), reader.read(&piece)),
            (Ok(vec![]), Ok(vec![]))
        );
        assert_eq!(reader.read(b"x"), Err(TooLong));
    }
}

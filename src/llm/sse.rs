//! Parser for server-sent events of a provider or of another Conclave. Input may be split at any
//! byte. A line without end is cut off at a maximum size.

/// Maximum bytes of one event.
const MAX: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamEvent {
    /// Empty if the event has no name.
    pub name: String,
    pub data: String,
    /// The last id that was sent, with this event or earlier.
    pub id: String,
}

/// An event exceeded the maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {MAX} bytes")]
pub struct TooLong;

/// Incremental parser of a stream.
#[derive(Debug, Default)]
pub struct StreamReader {
    line: Vec<u8>,
    /// True if the last byte was a carriage return, which a line feed may follow.
    after_return: bool,
    /// True if a line was read, so that no byte order mark may follow.
    begun: bool,
    name: String,
    data: Option<String>,
    id: String,
}

impl StreamReader {
    /// Returns the events that this piece completes.
    ///
    /// # Errors
    /// `TooLong` if an event has too many bytes. The stream must not be read any further.
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
            // A comment, a reconnection time, or an unknown field.
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

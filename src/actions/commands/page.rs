//! Lists in pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most entries of a page.
pub const PAGE_SIZE: usize = 10;

/// The last page that may be asked for.
const MAX_PAGE: u32 = 1000;

/// The page of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Page")]
pub struct PageArguments {
    /// The page, from 1; default 1. A page has ten entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub page: Option<u32>,
}

impl PageArguments {
    /// # Errors
    /// If the page is out of bounds.
    pub(super) fn checked(self) -> Result<Self, String> {
        match self.page {
            Some(page) if !(1..=MAX_PAGE).contains(&page) => {
                Err(format!("the page is from 1 to {MAX_PAGE}"))
            }
            _ => Ok(self),
        }
    }

    /// Returns how many entries are on earlier pages.
    pub(super) fn skipped(self) -> usize {
        (self.page.unwrap_or(1) as usize).saturating_sub(1) * PAGE_SIZE
    }

    /// Returns the last line of a page: which one it is, and how to get the next. `None` if the
    /// list has one page only.
    pub(super) fn footer(self, all: usize, command: &str) -> Option<String> {
        let (page, pages) = (self.page.unwrap_or(1) as usize, all.div_ceil(PAGE_SIZE));
        if pages <= 1 && page == 1 {
            return None;
        }
        let next = if page < pages {
            format!(" Next: {command} {}", page + 1)
        } else {
            String::new()
        };
        Some(format!("Page {page} of {pages}.{next}"))
    }
}

//! GNU ld and gold: archives are searched in the order of the files.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{CommonStorage, HostSearch, SearchedContent, SearchedFile, SymbolState};
use crate::linker_wrapper::choose::host_units::UnitReader;
use crate::linker_wrapper::error::LinkError;

impl HostSearch<'_> {
    pub(super) fn go_through(
        &mut self,
        files: &[SearchedFile],
        common: CommonStorage,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        let groups = files.chunk_by(|one, two| one.group == two.group);
        for group in groups {
            let mut is_first = true;
            loop {
                let mut has_loaded = false;
                for file in group {
                    match file.content.clone() {
                        SearchedContent::Searched(units) => {
                            has_loaded |= self.search(units, common, reader)?;
                        }
                        SearchedContent::Loaded(units) if is_first => {
                            has_loaded = true;
                            for unit in units {
                                self.load(unit, reader)?;
                            }
                        }
                        SearchedContent::Library { number, as_needed } if is_first => {
                            has_loaded = true;
                            let takes = |search: &Self, symbol, _| match as_needed {
                                true => search.is_undefined(symbol),
                                false => search.may_define(symbol),
                            };
                            self.want_for_library(number, takes, reader);
                        }
                        _ => {}
                    }
                }
                is_first = false;
                if !has_loaded || group.len() == 1 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Searches the archives once more.
    pub(super) fn go_through_again(
        &mut self,
        files: &[SearchedFile],
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        let archives = files
            .iter()
            .filter(|file| matches!(file.content, SearchedContent::Searched(_)));
        let archives: Vec<SearchedFile> = archives.cloned().collect();
        self.go_through(&archives, CommonStorage::IsDefined, reader)
    }

    /// Searches an archive until nothing is found, and tells whether a unit was loaded.
    fn search(
        &mut self,
        units: Range<usize>,
        common: CommonStorage,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<bool, LinkError> {
        let mut possible: BTreeSet<usize> = BTreeSet::new();
        for symbol in &self.wanted {
            possible.extend(within(&self.providers[*symbol], &units));
        }
        let (mut next, mut has_loaded) = (units.start, false);
        while !possible.is_empty() {
            let Some(unit) = possible.range(next..).next().copied() else {
                next = units.start;
                continue;
            };
            possible.remove(&unit);
            next = unit + 1;
            if !self.loaded[unit] && self.is_wanted(unit, common, reader)? {
                has_loaded = true;
                let symbols = self.listed[unit].iter().copied();
                let symbols = symbols.filter(|symbol| self.states[*symbol] != SymbolState::Common);
                let symbols: Vec<usize> = symbols.collect();
                let needed = self.load(unit, reader)?;
                // Its common storage may get a value from a member of the same archive.
                let is_new = |symbol: &&usize| {
                    self.states[**symbol] == SymbolState::Common
                        && common == CommonStorage::NeedsValue
                };
                let is_undefined =
                    |symbol: &&usize| self.states[**symbol] == SymbolState::Undefined;
                let needed = needed.iter().filter(is_undefined);
                for symbol in needed.chain(symbols.iter().filter(is_new)) {
                    possible.extend(within(&self.providers[*symbol], &units));
                }
            }
        }
        Ok(has_loaded)
    }
}

/// Returns the units in a range.
fn within(sorted: &[usize], units: &Range<usize>) -> impl Iterator<Item = usize> {
    let start = sorted.partition_point(|unit| *unit < units.start);
    let end = sorted.partition_point(|unit| *unit < units.end);
    sorted[start..end].iter().copied()
}

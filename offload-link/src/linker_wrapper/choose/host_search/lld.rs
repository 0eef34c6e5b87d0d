//! lld, and unknown linkers: a member is loaded as soon as both a reference and a definition were read.

use super::{CommonStorage, HostSearch, SearchedContent, SearchedFile, SymbolState};
use crate::linker_wrapper::choose::host_units::UnitReader;
use crate::linker_wrapper::error::LinkError;

impl HostSearch<'_> {
    pub(super) fn match_up(
        &mut self,
        files: &[SearchedFile],
        common: CommonStorage,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        for file in files {
            match file.content.clone() {
                SearchedContent::Loaded(units) => {
                    for unit in units {
                        self.load_all(unit, reader)?;
                    }
                }
                SearchedContent::Searched(units) => {
                    for unit in units {
                        self.offer(unit, common, reader)?;
                    }
                }
                SearchedContent::Library { number, .. } => {
                    // It comes before archives whose members nobody needed yet.
                    let takes = |search: &Self, symbol: usize, _| match search.states[symbol] {
                        SymbolState::Unknown | SymbolState::Lazy(_) => true,
                        _ => search.is_undefined(symbol),
                    };
                    let needed = self.want_for_library(number, takes, reader);
                    self.load_needed(needed, reader)?;
                }
            }
        }
        Ok(())
    }

    /// Loads a unit if one of its symbols is needed already.
    fn offer(
        &mut self,
        unit: usize,
        common: CommonStorage,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        if self.loaded[unit] {
            return Ok(());
        }
        if self.is_wanted(unit, common, reader)? {
            return self.load_all(unit, reader);
        }
        for place in 0..self.listed[unit].len() {
            let symbol = self.listed[unit][place];
            if self.states[symbol] == SymbolState::Unknown {
                self.set(symbol, SymbolState::Lazy(unit));
            }
        }
        Ok(())
    }

    /// Loads a unit, and what it needs of earlier archives.
    fn load_all(&mut self, unit: usize, reader: &mut UnitReader<'_, '_>) -> Result<(), LinkError> {
        let needed = self.load(unit, reader)?;
        self.load_needed(needed, reader)
    }

    pub(super) fn load_needed(
        &mut self,
        needed: Vec<usize>,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        // What a unit needs comes before what others still need.
        let mut left = vec![needed.into_iter()];
        while let Some(symbols) = left.last_mut() {
            let Some(symbol) = symbols.next() else {
                left.pop();
                continue;
            };
            if let SymbolState::Lazy(unit) = self.states[symbol] {
                self.set(symbol, SymbolState::Undefined);
                if !self.loaded[unit] {
                    left.push(self.load(unit, reader)?.into_iter());
                }
            }
        }
        Ok(())
    }
}

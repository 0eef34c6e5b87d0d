//! lld for Windows: members are read after all files.

use std::collections::VecDeque;

use super::{CommonStorage, HostSearch, SearchedContent, SearchedFile, SymbolState};
use crate::linker_wrapper::choose::host_units::UnitReader;
use crate::linker_wrapper::error::LinkError;

impl HostSearch<'_> {
    /// Goes through all files, and returns the units that it found.
    pub(super) fn queue_up(
        &mut self,
        files: &[SearchedFile],
        common: CommonStorage,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<VecDeque<usize>, LinkError> {
        let mut queue = VecDeque::new();
        for file in files {
            match file.content.clone() {
                SearchedContent::Loaded(units) => {
                    for unit in units {
                        let needed = self.load(unit, reader)?;
                        self.queue(needed, &mut queue);
                    }
                }
                SearchedContent::Searched(units) => {
                    for unit in units {
                        self.offer_to_queue(unit, common, &mut queue);
                    }
                }
                SearchedContent::Library { number, .. } => {
                    let takes = |search: &Self, symbol, _| search.is_undefined(symbol);
                    let needed = self.want_for_library(number, takes, reader);
                    self.queue(needed, &mut queue);
                }
            }
        }
        Ok(queue)
    }

    /// Loads units, and what they need.
    pub(super) fn load_queued(
        &mut self,
        mut queue: VecDeque<usize>,
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        while let Some(unit) = queue.pop_front() {
            if !self.loaded[unit] {
                let needed = self.load(unit, reader)?;
                self.queue(needed, &mut queue);
            }
        }
        Ok(())
    }

    /// Queues the units that archives had for these symbols.
    pub(super) fn queue(&mut self, needed: Vec<usize>, queue: &mut VecDeque<usize>) {
        for symbol in needed {
            if let SymbolState::Lazy(unit) = self.states[symbol] {
                self.set(symbol, SymbolState::Queued);
                queue.push_back(unit);
            }
        }
    }

    /// Queues a unit if one of its symbols is needed already.
    fn offer_to_queue(&mut self, unit: usize, common: CommonStorage, queue: &mut VecDeque<usize>) {
        let wanted: Vec<usize> = self.wanted_of(unit, common).copied().collect();
        for symbol in wanted {
            self.set(symbol, SymbolState::Queued);
            queue.push_back(unit);
        }
        for place in 0..self.listed[unit].len() {
            let symbol = self.listed[unit][place];
            if self.states[symbol] == SymbolState::Unknown {
                self.set(symbol, SymbolState::Lazy(unit));
            }
        }
    }
}

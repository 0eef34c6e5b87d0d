//! mold: a member is loaded if nothing defines the symbol but archives.

use std::collections::HashMap;

use super::{
    DefinitionRank, HostSearch, ReferredBy, SearchedContent, SearchedFile, SymbolState, referred_as,
};
use crate::linker_wrapper::choose::host_units::UnitReader;
use crate::linker_wrapper::error::LinkError;

/// A unit of an archive that defines a symbol. The least is the best.
type Definition = (DefinitionRank, usize);

impl HostSearch<'_> {
    /// Returns for each symbol the unit of an archive with the first of its best definitions. An only definition is not read, and
    /// counts as a strong one.
    fn best(&self, reader: &mut UnitReader<'_, '_>) -> Result<Vec<Option<Definition>>, LinkError> {
        let only = |units: &Vec<usize>| match units.as_slice() {
            [unit] => Some((DefinitionRank::Strong, *unit)),
            _ => None,
        };
        let mut best: Vec<Option<Definition>> = self.providers.iter().map(only).collect();
        let is_only = |symbol: &usize| self.providers[*symbol].len() == 1;
        for (unit, symbols) in self.listed.iter().enumerate() {
            if symbols.iter().all(is_only) {
                continue;
            }
            let mut ranks = HashMap::new();
            reader.unit(unit, &mut |symbols| {
                let weak = symbols.weak.iter().map(|name| (name, DefinitionRank::Weak));
                let common = symbols.common.iter();
                let common = common.map(|name| (name, DefinitionRank::Common));
                for (name, rank) in weak.chain(common) {
                    let numbers = referred_as(name).filter_map(|name| self.numbers.get(name));
                    ranks.extend(numbers.map(|symbol| (*symbol, rank)));
                }
            })?;
            for symbol in symbols.iter().filter(|symbol| !is_only(symbol)) {
                let rank = ranks.get(symbol).copied();
                let found = (rank.unwrap_or(DefinitionRank::Strong), unit);
                let other = best[*symbol].unwrap_or(found);
                best[*symbol] = Some(found.min(other));
            }
        }
        Ok(best)
    }

    pub(super) fn choose(
        &mut self,
        files: &[SearchedFile],
        reader: &mut UnitReader<'_, '_>,
    ) -> Result<(), LinkError> {
        let best = self.best(reader)?;
        let mut end = 0;
        for file in files {
            match file.content.clone() {
                SearchedContent::Loaded(units) => {
                    for unit in units {
                        self.load(unit, reader)?;
                    }
                }
                SearchedContent::Library { number, .. } => {
                    // The first file with a strong definition counts, an archive or a shared library. A weak definition of a
                    // library counts less than one of an archive.
                    let takes = |search: &Self, symbol: usize, rank| {
                        let first =
                            best[symbol].filter(|(rank, _)| *rank == DefinitionRank::Strong);
                        rank == DefinitionRank::Strong
                            && first.is_none_or(|(_, first)| first >= end)
                            && search.referred[symbol] < ReferredBy::Hidden
                    };
                    self.want_for_library(number, takes, reader);
                }
                SearchedContent::Searched(units) => end = end.max(units.end),
            }
        }
        // Objects come before archives wherever they are, but their common storage. Among archives the best definition is chosen,
        // whatever else is loaded.
        let mut needed: Vec<usize> = self.wanted.iter().copied().collect();
        let of_objects = self.states.clone();
        while let Some(symbol) = needed.pop() {
            let first = best[symbol].filter(|(rank, _)| match of_objects[symbol] {
                SymbolState::Defined => false,
                SymbolState::Common => *rank != DefinitionRank::Common,
                _ => true,
            });
            if let Some((_, unit)) = first.filter(|(_, unit)| !self.loaded[*unit]) {
                needed.extend(self.load(unit, reader)?);
                // Its common storage may get a value.
                let symbols = self.listed[unit].iter().copied();
                let common = symbols.filter(|symbol| {
                    let is_better =
                        best[*symbol].is_some_and(|(rank, _)| rank < DefinitionRank::Common);
                    is_better && self.states[*symbol] == SymbolState::Common
                });
                needed.extend(common);
            }
        }
        Ok(())
    }
}

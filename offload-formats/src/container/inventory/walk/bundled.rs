//! Walks bundles: plain, compressed and of text.

use std::ops::Range;
use std::sync::Arc;

use super::Walker;
use crate::container::bundled::BundledEntry;
use crate::container::inventory::found::{
    ContainerCompression, ContainerData, ContainerFormat, ImageContainer, InventoryImage,
};
use crate::container::inventory::identity::Identity;
use crate::format::bundle::Bundle;
use crate::format::bundle_text::{self, Comment};
use crate::format::bundles::{self, AnyBundle};
use crate::format::bytes::ReadAt;
use crate::format::compressed_bundle::{CompressedBundle, CompressedBundleError};

impl<'d, R: ReadAt<'d>> Walker<'_, R> {
    pub(super) fn bundles(&mut self, range: Range<u64>) {
        let end = range.end;
        let walked = bundles::walk(self.data, range);
        let Some(walked) = self.noted(walked) else {
            return;
        };
        for bundle in walked.bundles {
            match bundle {
                AnyBundle::Plain(bundle) => {
                    let container = self.container(ContainerFormat::Bundle, bundle.range());
                    self.bundle_entries(container, bundle, Some(self.data));
                }
                AnyBundle::Compressed(bundle) => self.compressed_bundle(bundle),
            }
        }
        if walked.end < end {
            let (offset, size) = (walked.end, end - walked.end);
            let text = format!("{size:#x} bytes at offset {offset:#x} are not a bundle");
            self.problem(text.into());
        }
    }

    fn compressed_bundle(&mut self, bundle: CompressedBundle) {
        let claimed = bundle.uncompressed_size;
        let mut container = self.container(ContainerFormat::Bundle, bundle.range());
        container.compression = Some(ContainerCompression {
            method: bundle.method,
            version: Some(bundle.version.raw()),
            uncompressed_size: claimed,
            hash: Some(bundle.hash),
        });
        let limit = self.unpacking.limit;
        if claimed > limit {
            let problem = CompressedBundleError::Limit { claimed, limit };
            return self.problem(problem.into());
        }
        let contents = bundle.contents(self.data);
        let Some(contents) = self.noted(contents) else {
            return;
        };
        if let Some(inner) = contents {
            container.data = ContainerData::Packed(Arc::new(bundle));
            return self.bundle_entries(container, inner, None::<&[u8]>);
        }
        // A text bundle, which is read completely.
        let bytes = bundle.unpack(self.data, self.unpacking.left, &self.unpacking.scratch);
        let Some(bytes) = self.noted(bytes) else {
            return;
        };
        self.unpacking.left = self.unpacking.left.saturating_sub(claimed);
        let (data, all) = (bytes.open(), 0..bytes.size());
        let Some(comment) = Comment::at(&data, all.clone()) else {
            return self.problem("expected a bundle in the compressed bundle".into());
        };
        container.format = ContainerFormat::TextBundle;
        container.data = ContainerData::Unpacked(bytes);
        let entries = bundle_text::parse(&data, all, comment);
        if let Some(entries) = self.noted(entries) {
            let entries = entries.into_iter().map(|entry| (entry.id, entry.text));
            self.entries(container, entries.collect(), Some(&data));
        }
    }

    fn bundle_entries<'b, B: ReadAt<'b>>(
        &mut self,
        container: ImageContainer,
        bundle: Bundle,
        data: Option<B>,
    ) {
        let entries = bundle.entries.into_iter();
        let entries = entries.map(|entry| (entry.id, entry.image)).collect();
        self.entries(container, entries, data);
    }

    pub(super) fn text_bundle(&mut self, range: Range<u64>, comment: Comment) {
        let entries = bundle_text::parse(self.data, range.clone(), comment);
        let Some(entries) = self.noted(entries) else {
            return;
        };
        let container = self.container(ContainerFormat::TextBundle, range);
        let entries = entries.into_iter().map(|entry| (entry.id, entry.text));
        self.entries(container, entries.collect(), Some(self.data));
    }

    /// Adds a container with a bundle's entries, whose images are in `data`, or else in bytes that were not unpacked.
    pub(super) fn entries<'b, B: ReadAt<'b>>(
        &mut self,
        mut container: ImageContainer,
        entries: Vec<(String, Range<u64>)>,
        data: Option<B>,
    ) {
        for (index, (id, range)) in entries.into_iter().enumerate() {
            let image = self.entry(index, id, range, data);
            container.images.push(image);
        }
        self.found.containers.push(container);
    }

    /// Returns the image of a bundle's entry.
    pub(super) fn entry<'b, B: ReadAt<'b>>(
        &mut self,
        index: usize,
        id: String,
        range: Range<u64>,
        data: Option<B>,
    ) -> InventoryImage {
        let target = BundledEntry::target_of(&id);
        let is_host = matches!(target, Ok(None));
        // The entry ID remains of an entry for an unknown kind.
        let target = target.ok().flatten().unwrap_or_default();
        let (identity, inner) = match data {
            Some(data) => (
                Some(Identity::of(data, range.clone())),
                self.inner(data, range.clone()),
            ),
            None => (None, Vec::new()),
        };
        InventoryImage {
            index,
            entry_id: Some(id),
            is_host,
            target,
            own_target_id: identity.as_ref().and_then(|own| own.target_id.clone()),
            form: identity.map(|own| own.form),
            size: range.end.saturating_sub(range.start),
            stored_size: range.end.saturating_sub(range.start),
            range,
            unpacked: None,
            fatbin_entry: None,
            inner,
        }
    }
}

//! Tables: what a column is, its title and all its cells show alike.

use maud::{Markup, html};

/// A column by its title.
#[derive(Clone, Copy)]
pub(super) struct Column {
    title: &'static str,
    class: Option<&'static str>,
    is_name: bool,
    is_labelled: bool,
}

/// Words.
pub(super) const fn text(title: &'static str) -> Column {
    Column {
        title,
        class: None,
        is_name: false,
        is_labelled: true,
    }
}

/// Figures, to the right.
pub(super) const fn number(title: &'static str) -> Column {
    Column {
        class: Some("n"),
        ..text(title)
    }
}

/// A picture.
pub(super) const fn drawn(title: &'static str) -> Column {
    Column {
        class: Some("drawn"),
        ..text(title).plain()
    }
}

/// What a row is about.
pub(super) const fn name(title: &'static str) -> Column {
    text(title).naming()
}

impl Column {
    /// The row is about this.
    pub(super) const fn naming(self) -> Self {
        Self {
            is_name: true,
            ..self
        }
    }

    /// Without its title before each cell where the screen is narrow: the cell says enough.
    pub(super) const fn plain(self) -> Self {
        Self {
            is_labelled: false,
            ..self
        }
    }

    fn cell(self, content: &Markup) -> Markup {
        html! {
            @if self.is_name {
                th scope="row" class=[self.class] { (content) }
            } @else {
                td class=[self.class] data-label=[self.is_labelled.then_some(self.title)] { (content) }
            }
        }
    }
}

/// Each row has a cell for each column.
pub(super) fn table(
    class: Option<&str>,
    caption: &str,
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<Markup>>,
) -> Markup {
    html! {
        table class=[class] {
            caption { (caption) }
            thead { tr {
                @for column in columns { th scope="col" class=[column.class] { (column.title) } }
            } }
            tbody {
                @for cells in rows {
                    tr { @for (column, content) in columns.iter().zip(&cells) { (column.cell(content)) } }
                }
            }
        }
    }
}

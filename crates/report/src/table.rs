//! Tables whose columns define the look of their title and of all their cells.

use maud::{Markup, html};

/// A column by its title.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    class: Option<&'static str>,
    is_name: bool,
    is_labeled: bool,
}

/// A column of text.
pub(crate) const fn text(title: &'static str) -> Column {
    Column {
        title,
        class: None,
        is_name: false,
        is_labeled: true,
    }
}

/// A column of numbers, aligned to the right.
pub(crate) const fn number(title: &'static str) -> Column {
    Column {
        class: Some("n"),
        ..text(title)
    }
}

/// A column of bars.
pub(crate) const fn drawn(title: &'static str) -> Column {
    Column {
        class: Some("drawn"),
        ..text(title).plain()
    }
}

/// The column with the name of the row.
pub(crate) const fn name(title: &'static str) -> Column {
    text(title).naming()
}

impl Column {
    /// Makes it the column with the name of the row.
    pub(crate) const fn naming(self) -> Self {
        Self {
            is_name: true,
            ..self
        }
    }

    /// Omits the title before each cell on narrow screens.
    pub(crate) const fn plain(self) -> Self {
        Self {
            is_labeled: false,
            ..self
        }
    }

    fn cell(self, content: &Markup) -> Markup {
        html! {
            @if self.is_name {
                th scope="row" class=[self.class] { (content) }
            } @else {
                td class=[self.class] data-label=[self.is_labeled.then_some(self.title)] { (content) }
            }
        }
    }
}

/// Renders a table. Each row has one cell per column.
pub(crate) fn table(
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

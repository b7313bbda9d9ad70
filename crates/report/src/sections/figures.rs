//! All figures as JSON, for programs.

use maud::{Markup, html};

use crate::{context::Context, figures, parts::section as part};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let json = figures::json(context);
    let content = html! {
        details {
            summary { "Show the figures as JSON (" (json.len().div_ceil(1024)) " kB)" }
            pre class="json" { code { (json) } }
        }
    };
    part("figures", "Figures", &content)
}

use crate::scene::MB;
use hugeinfo::server::facts::HugePages;

table! { huge_page_size;
    "the kernel has it" |_| {} Ok "has huge pages of 2 MB";
    "a size that the kernel lacks" |m| { m.fall_back(537); m.facts.server.huge_page_size_bytes = Some(16 * MB) }
        Warning "of 16 MB, but the kernel has 2 MB, 1 GB"
        => "ALTER SYSTEM SET huge_page_size = 0";
    "such a size waits, and huge pages are required"
        |m| { m.facts.server.huge_pages = HugePages::On; m.waits(|next| next.huge_page_size_bytes = Some(16 * MB)) }
        Critical "16 MB" => "ALTER SYSTEM SET huge_page_size = 0";
    "nobody asks for it"
        |m| { m.fall_back(0); m.asked(0); m.facts.server.huge_page_size_bytes = Some(16 * MB); m.facts.server.huge_pages = HugePages::Off }
        Ok "16 MB";
    "between two powers of two" |m| { m.facts.server.huge_page_size_bytes = Some(1536 << 10) } Ok "of 2 MB";
    "of which the kernel has neither" |m| { m.fall_back(537); m.facts.server.huge_page_size_bytes = Some(3 * MB) }
        Warning "of 3 MB, but the kernel has 2 MB, 1 GB"
        => "ALTER SYSTEM SET huge_page_size = 0";
}

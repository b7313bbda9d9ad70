table! { hugetlb_shm_group;
    "set or not" |m| { m.fall_back(0); m.file("proc/sys/vm/hugetlb_shm_group", "1001\n") } Ok "(1001) does not affect";
    "unseen" |m| { m.file("proc/sys/vm/hugetlb_shm_group", None) } Unknown "cannot be read";
}

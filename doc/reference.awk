# What doxygen reads in place of a header: the head of the file becomes the file's page, and, where it begins with the name of a class ("Transaction: what happens …"), the description of that
# class, too. The sources need no words for doxygen that way, and each promise stands in them once.
FNR == 1 { lines = 0; reading = 0; name = "" }
# Here the comment that makes the head the file's page; doxygen needs no guard against a second look.
/^#pragma once/ { reading = 1; print "/// @file"; next }
reading && /^\/\/\// {
    head[++lines] = $0
    if (lines == 1 && match($0, /^\/\/\/ [A-Za-z_]+: /)) {
        name = substr($0, 5, RLENGTH - 6)
        head[1] = "/// " toupper(substr($0, RLENGTH + 1, 1)) substr($0, RLENGTH + 2)
    }
    print
    next
}
{ reading = 0 }
name != "" && /^(class|struct) / && !/;$/ {
    declared = $0
    sub(/ (final )?[:{].*/, "", declared)
    sub(/.* /, "", declared)
    if (declared == name) {
        for (i = 1; i <= lines; ++i) print head[i]
        name = ""
    }
}
# Two things that doxygen takes for what they aren't: a specialisation in a namespace that it doesn't read, and a class that derives from another of its own template.
/^struct std::is_error_code_enum/ { print ""; next }
{ sub(/ : Callable<decltype\(&F::operator\(\)\)>/, ""); print }

#include <histedit.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "command/commands.hpp"
#include "command/prompt.hpp"

namespace cad::command {

struct Prompt::Editor {
    explicit Editor(Workplace& workplace) : place(workplace) {}

    Workplace& place;
    std::string prompt;
    std::string file;  ///< of remembered lines; empty: there is no home
    EditLine* line = nullptr;
    History* lines = nullptr;

    static Editor& of(EditLine* line) {
        void* self = nullptr;
        el_get(line, EL_CLIENTDATA, &self);
        return *static_cast<Editor*>(self);
    }
    static char* prompt_of(EditLine* line) { return of(line).prompt.data(); }

    /// What all words begin with.
    static std::string common_beginning(const std::vector<std::string>& words) {
        std::string common = words.front();
        for (const std::string& word : words) {
            const auto differ = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
            common.erase(differ.first, common.end());
        }
        return common;
    }

    static unsigned char tab(EditLine* line, int) {
        const LineInfo* const info = el_line(line);
        const std::string_view to_cursor(info->buffer, static_cast<std::size_t>(info->cursor - info->buffer));
        Completion completion;
        try {
            completion = complete(of(line).place, to_cursor);
        } catch (const std::exception&) {
            return CC_ERROR;  // a line that can't be read has no completions
        }
        if (completion.words.empty()) return CC_REFRESH_BEEP;
        std::string text = common_beginning(completion.words);
        const bool single = completion.words.size() == 1;
        if (!single && text.size() <= completion.typed.size()) {
            list(completion.words);
            return CC_REDISPLAY;
        }
        text += single && !text.ends_with('/') ? " " : "";
        el_deletestr(line, static_cast<int>(completion.typed.size()));
        return el_insertstr(line, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }

    static void list(const std::vector<std::string>& words) {
        constexpr std::size_t shown_max = 60;
        std::printf("\n");
        for (std::size_t i = 0; i < std::min(words.size(), shown_max); ++i) std::printf("%s%s", i == 0 ? "" : "  ", words[i].c_str());
        if (words.size() > shown_max) std::printf("  and %zu more", words.size() - shown_max);
        std::printf("\n");
        std::fflush(stdout);
    }
};

Prompt::Prompt(Workplace& place) : editor_(std::make_unique<Editor>(place)) {
    constexpr int lines_max = 1000;
    std::setlocale(LC_CTYPE, "");  // numbers keep their points
    HistEvent event;
    editor_->lines = history_init();
    history(editor_->lines, &event, H_SETSIZE, lines_max);
    history(editor_->lines, &event, H_SETUNIQUE, 1);
    if (const char* const home = std::getenv("HOME"); home != nullptr && *home != '\0') {
        editor_->file = std::string(home) + "/.taiyen_cad_history";
        history(editor_->lines, &event, H_LOAD, editor_->file.c_str());
    }
    EditLine* const line = editor_->line = el_init("taiyen_cad", stdin, stdout, stderr);
    el_set(line, EL_CLIENTDATA, editor_.get());
    el_set(line, EL_PROMPT, Editor::prompt_of);
    el_set(line, EL_EDITOR, "emacs");
    el_set(line, EL_HIST, history, editor_->lines);
    el_set(line, EL_ADDFN, "complete-word", "complete the word", Editor::tab);
    el_set(line, EL_BIND, "^I", "complete-word", nullptr);
    el_set(line, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(line, nullptr);  // the user's ~/.editrc has the last word
}

Prompt::~Prompt() {
    HistEvent event;
    if (!editor_->file.empty()) history(editor_->lines, &event, H_SAVE, editor_->file.c_str());
    el_end(editor_->line);
    history_end(editor_->lines);
}

std::optional<std::string> Prompt::read(const std::string& prompt) {
    std::optional<std::string> line = ask(prompt);
    if (line && line->find_first_not_of(" \t") != std::string::npos) {
        HistEvent event;
        history(editor_->lines, &event, H_ENTER, line->c_str());
    }
    return line;
}

std::optional<std::string> Prompt::ask(const std::string& question) {
    editor_->prompt = question;
    int length = 0;
    const char* const text = el_gets(editor_->line, &length);
    if (text == nullptr || length <= 0) return std::nullopt;
    std::string line(text, static_cast<std::size_t>(length));
    line.erase(line.find_last_not_of("\r\n") + 1);
    return line;
}

}  // namespace cad::command

/* The part of the host suite about results of blocks: texts, images, audio and files. */
#include "suite.h"

#include "check.h"
#include "plue.h"

#include <stdio.h>
#include <string.h>

/* What the tool "draw" returns, as blocks, and the tool "look_alike", as a value. */
static const char drawn[] = "{\"content\":[{\"type\":\"text\",\"text\":\"A dot.\"},"
                            "{\"type\":\"image\",\"data\":\"R0lG\",\"mimeType\":\"image/gif\"}],"
                            "\"metadata\":{\"file\":\"dot.gif\"},\"structuredContent\":{\"dots\":1}}";

static void expect_result(const char *tool, int flags, const char *expected) {
    char *json = NULL;
    int status = plue_tool_call(tool, "{}", NULL, &json);
    CHECK(status == PLUE_OK && strcmp(json, expected) == 0, "%s: %d %s", tool, status, json);
    CHECK(plue_get_last_result_flags() == flags, "%s: %d", tool, plue_get_last_result_flags());
    plue_free_json(json);
}

/* The flag tells blocks from a value that has their form, and is that of the last call. */
static void test_flag(void) {
    expect_result("draw", PLUE_RESULT_BLOCKS, drawn);
    expect_result("look_alike", 0, drawn);
    plue_free_json(plue_tool_execute("draw", NULL, NULL));
    CHECK(plue_get_last_result_flags() == PLUE_RESULT_BLOCKS, "%d", plue_get_last_result_flags());
    expect_failure("nope", "{}", "unknown_tool", "nope");
    CHECK(plue_get_last_result_flags() == 0, "%d", plue_get_last_result_flags());
    expect_result("draw", PLUE_RESULT_BLOCKS, drawn);
    plue_free_json(plue_tool_list());
    CHECK(plue_get_last_result_flags() == 0, "%d", plue_get_last_result_flags());
    CHECK(plue_feature("result_flags") == 1, "the feature");
}

struct end {
    int count;
    int flags;
    bool has_failed;
};

static void note_end(int status, const char *json, void *user_data) {
    struct end *end = user_data;
    end->count++;
    end->flags = plue_get_last_result_flags();
    end->has_failed = strcmp(plue_get_last_error_json(), "{}") != 0;
    CHECK(end->has_failed == (status != PLUE_OK), "%d %s", status, json);
}

/* What a thread asks in a callback is about the call that it is told of. */
static void test_submitted(void) {
    static const struct {
        const char *tool;
        int flags;
        bool fails;
    } rows[] = {{"draw", PLUE_RESULT_BLOCKS, false}, {"nope", 0, true}, {"look_alike", 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct end end = {.count = 0};
        CHECK(plue_tool_submit(rows[i].tool, "{}", NULL, note_end, &end) == PLUE_OK, "submitting");
        while (end.count == 0) {
            CHECK(plue_events_dispatch(-1) >= 0, "%s", plue_get_last_error());
        }
        CHECK(end.flags == rows[i].flags && end.has_failed == rows[i].fails, "%s: %d %d",
              rows[i].tool, end.flags, end.has_failed);
        CHECK(plue_get_last_result_flags() == 0, "that of the dispatch");
        CHECK(strcmp(plue_get_last_error_json(), "{}") == 0, "%s", plue_get_last_error_json());
    }
}

/* An image of 10 MB arrives whole. */
static void test_large(void) {
    enum { BASE64 = 14 << 20 };
    char params[40];
    char *json = NULL;
    snprintf(params, sizeof params, "{\"letters\":%d}", BASE64);
    int status = plue_tool_call("draw", params, NULL, &json);
    CHECK(status == PLUE_OK && plue_get_last_result_flags() == PLUE_RESULT_BLOCKS, "%.200s", json);
    const char *data = strstr(json, "\"data\":\"");
    CHECK(data != NULL, "%.200s", json);
    if (data != NULL) {
        size_t letters = strspn(data + strlen("\"data\":\""), "A");
        CHECK(letters == BASE64, "%zu letters", letters);
    }
    CHECK(contains(json, "\"metadata\":{\"file\":\"dot.gif\"}"), "its end");
    plue_free_json(json);
}

static void run_photo(plue_invocation_t *invocation, const char *params_json, void *user_data) {
    (void)params_json;
    plue_invocation_succeed(invocation, user_data);
}

static void expect_registered(const char *name, const char *blocks, const char *result) {
    char definition[200];
    snprintf(definition, sizeof definition,
             "{\"name\":\"host:%s\",\"description\":\"Takes a photo.\"%s}", name, blocks);
    int status = plue_register_tool(definition, run_photo, NULL, (void *)(size_t)result);
    CHECK(status == PLUE_OK, "%d %s", status, plue_get_last_error());
}

static void expect_refused_blocks(const char *result, const char *part) {
    expect_registered("photo", ",\"blocks\":true", result);
    expect_failure("host:photo", "{}", "invalid_result", part);
    plue_unregister_tool("host:photo");
}

/* A tool of this program that is registered with "blocks" returns them, and no other does. */
static void test_registered(void) {
    expect_registered("photo", ",\"blocks\":true", drawn);
    expect_registered("value", "", drawn);
    expect_result("host:photo", PLUE_RESULT_BLOCKS, drawn);
    expect_result("host:value", 0, drawn);
    plue_unregister_tool("host:photo");
    plue_unregister_tool("host:value");

    expect_refused_blocks("[]", "\"/content\"");
    expect_refused_blocks("{\"content\":[{\"type\":\"image\",\"data\":\"AAAA\"}]}",
                          "\"/content/0/mimeType\"");
    expect_refused_blocks("{\"content\":[],\"meta\":1}", "\"/meta\"");
    expect_refused_blocks("{", "not JSON");
    CHECK(plue_register_tool("{\"name\":\"x\",\"description\":\"d\",\"blocks\":1}", run_photo, NULL,
                             NULL) == PLUE_INVALID_ARGUMENT,
          "blocks that are no boolean");
    CHECK(contains(plue_get_last_error(), "\"/blocks\" must be"), "%s", plue_get_last_error());
}

void suite_blocks(void) {
    test_flag();
    test_submitted();
    test_large();
    test_registered();
}

/* Offers a tool whose results are blocks. */
void suite_offer_blocks(void) {
    expect_registered("photo", ",\"blocks\":true", drawn);
}

/* The host suite: the same in both hostings, against every runtime. */
#ifndef SUITE_H
#define SUITE_H

/* Runs the parts named, such as "basic", "abort" or "stress:8:20000:echo". Returns the number of
 * failures. `config_json` may be NULL. */
int suite_run(const char *config_json, int count, char **parts);

/* In suite_events.c. Those about tools need a runtime in JavaScript; restarts need a sidecar. */
void suite_submit(void);
void suite_submit_restarts(void);
void suite_tools(void);
void suite_tools_restarts(void);
void suite_tools_shutdown(void);
void suite_offer(void);
void suite_questions(void);
void suite_questions_restarts(void);
void suite_notices(void);
void suite_taking_back(void);
void suite_log(void);
void suite_log_left(void);

/* In contract.c. Runs the cases whose title begins with the group; NULL: all. */
void suite_contract(const char *group);

#endif

/* A host that unloads a plugin with libplue while its sidecar runs: plugin_host PLUGIN. It starts
 * in the plugin's folder and then changes its folder; `PLUGIN` may be a relative path. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *plugin;
static int status = 1;

/* The library's data of a thread are freed at the end of the thread, which is after dlclose(). */
static void *use_plugin(void *unused) {
    void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return unused;
    }
    const char *left_over = dlerror();
    int (*call)(void);
    void *symbol = dlsym(handle, "plugin_call");
    memcpy(&call, &symbol, sizeof call);
    if (left_over == NULL && chdir("/") == 0 && call() == 0 && dlclose(handle) == 0) {
        status = 0;
    }
    return unused;
}

int main(int count, char **arguments) {
    plugin = count > 1 ? arguments[1] : "";
    pthread_t thread;
    pthread_create(&thread, NULL, use_plugin, NULL);
    pthread_join(thread, NULL);
    puts(status == 0 ? "plugin_host: ok" : "plugin_host: FAILED");
    return status;
}

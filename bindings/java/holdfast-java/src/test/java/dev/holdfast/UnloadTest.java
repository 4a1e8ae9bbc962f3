/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A web application that is stopped takes the binding with it. */
@Timeout(120)
class UnloadTest {
    @Test
    void theClassesAndTheNativeLibraryCanGo() throws Exception {
        // And come again.
        for (int turn = 0; turn < 2; turn++) {
            WeakReference<ClassLoader> loader = useInLoader();
            while (loader.get() != null) {
                System.gc();
            }
        }
    }

    private static WeakReference<ClassLoader> useInLoader() throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String part : System.getProperty("java.class.path").split(":")) {
            urls.add(Path.of(part).toUri().toURL());
        }
        try (URLClassLoader loader =
                new URLClassLoader(
                        urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
            Class<?> user = loader.loadClass(User.class.getName());
            user.getMethod("use", String.class).invoke(null, Store.testUrl());
            return new WeakReference<>(loader);
        }
    }

    /** What the application does. */
    public static final class User {
        private User() {}

        public static void use(String url) throws Exception {
            try (HoldfastClient client = HoldfastClient.open(url)) {
                client.acquire("unload").close();
                Hold hold = client.acquireAsync("unload", LockOptions.DEFAULT).get();
                hold.onLost(lost -> {});
                hold.close();
            }
        }
    }
}

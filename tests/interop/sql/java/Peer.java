// SPDX-License-Identifier: MIT
//
// Peer.java - ShedLock and Spring's JdbcLockRegistry, told what to do line by line.
//
//     java Peer JDBC-URL
//
// "THREAD lock KIND NAME LEASE_MS WAIT_MS"   → "THREAD ok", "THREAD busy"
// "THREAD keep KIND NAME LEASE_MS"           → "THREAD ok", "THREAD lost"
// "THREAD unlock KIND NAME"                  → "THREAD ok", "THREAD lost"
// "THREAD count KIND NAME TIMES FILE"        → "THREAD ok"
//
// KIND is shedlock or spring. Each thread is a thread, and to Spring a client of its
// own. ShedLock does not wait: WAIT_MS is for how long it is asked again. count adds
// one to the number in FILE, TIMES times, each time with the lock.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ConcurrentModificationException;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

public final class Peer {
    private static final Map<String, Side> sides = new ConcurrentHashMap<>();
    private static DriverManagerDataSource database;

    /** What both libraries can do. */
    private interface Side {
        boolean lock(String name, Duration lease, Duration wait) throws Exception;

        boolean keep(String name, Duration lease);

        boolean unlock(String name);
    }

    private static final class ShedLock implements Side {
        private final JdbcTemplateLockProvider provider = new JdbcTemplateLockProvider(
            JdbcTemplateLockProvider.Configuration.builder()
                .withJdbcTemplate(new JdbcTemplate(database))
                .usingDbTime()
                .build());
        private final Map<String, SimpleLock> held = new ConcurrentHashMap<>();

        @Override
        public boolean lock(String name, Duration lease, Duration wait) throws Exception {
            Instant until = Instant.now().plus(wait);
            for (;;) {
                Optional<SimpleLock> lock = provider.lock(
                    new LockConfiguration(Instant.now(), name, lease, Duration.ZERO));
                lock.ifPresent(it -> held.put(name, it));
                if (lock.isPresent() || !Instant.now().isBefore(until))
                    return lock.isPresent();
                Thread.sleep(5);
            }
        }

        @Override
        public boolean keep(String name, Duration lease) {
            Optional<SimpleLock> lock = held.remove(name).extend(lease, Duration.ZERO);
            lock.ifPresent(it -> held.put(name, it));
            return lock.isPresent();
        }

        @Override
        public boolean unlock(String name) {
            held.remove(name).unlock();
            return true; // it does not say
        }
    }

    private static final class Spring implements Side {
        private final JdbcLockRegistry registry;

        Spring() {
            DefaultLockRepository repository = new DefaultLockRepository(database);
            repository.setTransactionManager(new DataSourceTransactionManager(database));
            repository.afterPropertiesSet();
            repository.afterSingletonsInstantiated();
            repository.start();
            registry = new JdbcLockRegistry(repository);
            registry.setIdleBetweenTries(Duration.ofMillis(5));
        }

        @Override
        public boolean lock(String name, Duration lease, Duration wait) throws Exception {
            return registry.obtain(name).tryLock(wait, lease);
        }

        @Override
        public boolean keep(String name, Duration lease) {
            try {
                registry.renewLock(name, lease);
                return true;
            } catch (IllegalStateException e) {
                return false;
            }
        }

        @Override
        public boolean unlock(String name) {
            try {
                registry.obtain(name).unlock();
                return true;
            } catch (ConcurrentModificationException e) {
                return false;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        database = new DriverManagerDataSource(args[0]);
        database.getConnection().close();
        Orders.obey(Peer::carryOut);
    }

    private static String carryOut(String[] words) throws Exception {
        Side side = sides.computeIfAbsent(words[0] + words[2],
            key -> words[2].equals("spring") ? new Spring() : new ShedLock());
        String name = words[3];
        switch (words[1]) {
            case "lock":
                return side.lock(name, millis(words[4]), millis(words[5])) ? "ok" : "busy";
            case "keep":
                return side.keep(name, millis(words[4])) ? "ok" : "lost";
            case "unlock":
                return side.unlock(name) ? "ok" : "lost";
            case "count":
                return count(side, name, Integer.parseInt(words[4]), Path.of(words[5]));
            default:
                return "what?";
        }
    }

    private static Duration millis(String word) {
        return Duration.ofMillis(Long.parseLong(word));
    }

    private static String count(Side side, String name, int times, Path file) throws Exception {
        for (int i = 0; i < times; i++) {
            if (!side.lock(name, Duration.ofMinutes(1), Duration.ofMinutes(2)))
                return "busy";
            int number = Integer.parseInt(Files.readString(file).trim());
            Files.writeString(file, Integer.toString(number + 1));
            if (!side.unlock(name))
                return "lost";
        }
        return "ok";
    }
}

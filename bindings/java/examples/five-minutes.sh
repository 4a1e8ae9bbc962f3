#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# five-minutes.sh - what a new user does after "./dev java install": a pom.xml with
# the artifact, ten lines, and it holds a lock. In an empty directory.

set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p src/main/java

cat >pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>me</groupId>
  <artifactId>hello</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>dev.holdfast</groupId>
      <artifactId>holdfast-java</artifactId>
      <version>0.1.0</version>
    </dependency>
    <dependency>
      <groupId>dev.holdfast</groupId>
      <artifactId>holdfast-spring-boot-starter</artifactId>
      <version>0.1.0</version>
    </dependency>
  </dependencies>
</project>
END
cat >src/main/java/Hello.java <<'END'
import dev.holdfast.HoldfastClient;

public class Hello {
    public static void main(String[] args) {
        try (var client = HoldfastClient.open(args[0]); var hold = client.acquire("hello")) {
            System.out.println("I hold the lock, token " + hold.token());
        }
    }
}
END
mvn -q -B compile org.codehaus.mojo:exec-maven-plugin:3.5.0:java \
    -Dexec.mainClass=Hello -Dexec.args="local://$dir/store" | tee out
grep -q "I hold the lock" out

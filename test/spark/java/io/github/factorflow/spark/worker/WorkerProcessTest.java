package io.github.factorflow.spark.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Shell processes act as workers: they write frames with printf. */
class WorkerProcessTest {

  private static final ObjectNode REQUEST = JsonNodeFactory.instance.objectNode().put("command", "train");
  private static final String HELLO =
    "{\"type\":\"hello\",\"protocol\":1,\"version\":\"" + Launch.VERSION + "\",\"node\":\"v24\"}";

  @TempDir
  Path folder;

  private static String frame(String header) {
    return (
      "printf '\\" + Integer.toOctalString(header.length()) + "\\0\\0\\0\\0\\0\\0\\0%s' '" + header + "'\n"
    );
  }

  private Launch script(String body) throws IOException {
    Path file = folder.resolve("worker" + System.nanoTime());
    Files.writeString(file, "#!/bin/sh\n" + body);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    return new Launch("/bin/sh", file.toString(), List.of(), 60_000, "Raise memory");
  }

  private static WorkerProcess start(Launch launch) {
    return WorkerProcess.start(launch, REQUEST, () -> false, frame -> {});
  }

  private static String failure(Launch launch) {
    return assertThrows(FactorFlowException.class, () -> start(launch).close()).getMessage();
  }

  @Test
  void greetsAndGivesFramesAndProgress() throws IOException {
    List<String> seen = Collections.synchronizedList(new ArrayList<>());
    Launch launch = script(
      frame(HELLO) + "read line\n" + frame("{\"type\":\"iteration\"}") + frame("{\"type\":\"done\"}")
    );
    try (
      WorkerProcess worker = WorkerProcess.start(
        launch,
        REQUEST,
        () -> false,
        frame -> seen.add(frame.type())
      )
    ) {
      assertEquals("done", worker.take().type());
      assertNull(worker.take());
      assertEquals(List.of("iteration"), seen);
    }
  }

  @Test
  void namesAProgramThatIsNotThere() {
    String message = failure(new Launch(null, "/nowhere/factorflow", List.of(), 60_000, "Raise memory"));
    assertTrue(message.contains("/nowhere/factorflow") && message.contains("--archives"), message);
  }

  @Test
  void saysThatAProgramEndedBeforeItsGreeting() throws IOException {
    String message = failure(script("echo 'unknown command worker' >&2\nexit 2\n"));
    assertTrue(
      message.contains("status 2") &&
        message.contains("unknown command worker") &&
        message.contains(Launch.VERSION),
      message
    );
  }

  @Test
  void refusesAnotherVersionAndAnotherProtocol() throws IOException {
    String version = failure(
      script(frame(HELLO.replace(Launch.VERSION, "0.0.9")) + "read line; read line\n")
    );
    assertTrue(
      version.contains("FactorFlow 0.0.9") && version.contains("same version on all hosts"),
      version
    );
    String protocol = failure(
      script(frame(HELLO.replace("\"protocol\":1", "\"protocol\":7")) + "read line; read line\n")
    );
    assertTrue(protocol.contains("protocol 7"), protocol);
  }

  @Test
  void refusesOutputThatIsNoFrame() throws IOException {
    String message = failure(script("echo 'Welcome to another program'; read line; read line\n"));
    assertTrue(message.contains("is no frame"), message);
  }

  @Test
  void endsAProcessThatIgnoresTermination() throws Exception {
    AtomicBoolean cancel = new AtomicBoolean();
    Launch launch = script("trap '' TERM\n" + frame(HELLO) + "while true; do sleep 0.1; done\n");
    try (WorkerProcess worker = WorkerProcess.start(launch, REQUEST, cancel::get, frame -> {})) {
      ProcessHandle process = ProcessHandle.of(worker.pid()).orElseThrow();
      cancel.set(true);
      assertNull(worker.take());
      process.onExit().get();
      assertFalse(process.isAlive());
      assertTrue(worker.gone("ended", "").getMessage().contains("was cancelled"));
    }
  }

  @Test
  void keepsTheLastOfStandardError() throws IOException {
    Launch launch = script(
      frame(HELLO) +
        "i=0; while [ $i -lt 5000 ]; do echo \"line $i of many\" >&2; i=$((i+1)); done; kill -9 $$\n"
    );
    try (WorkerProcess worker = start(launch)) {
      assertNull(worker.take());
      String message = worker.gone("ended before its factors were whole", "").getMessage();
      assertTrue(
        message.contains("line 4999 of many") &&
          !message.contains("line 10 of many") &&
          message.length() < 6000,
        message
      );
      assertTrue(message.contains("memoryOverhead"), message);
    }
  }

  @Test
  void endsAProcessThatGivesNoSignOfLife() throws IOException {
    Launch beating = script(
      frame(HELLO) +
        "read line\ni=0; while [ $i -lt 8 ]; do sleep 0.2; printf '\\0' >&2; i=$((i+1)); done\nkill -STOP $$\n"
    );
    Launch launch = new Launch(beating.node(), beating.executable(), List.of(), 1000, "Raise memory");
    long start = System.nanoTime();
    try (WorkerProcess worker = start(launch)) {
      assertNull(worker.take());
      long millis = (System.nanoTime() - start) / 1_000_000;
      assertTrue(millis > 2400, "signs of life extend the time: " + millis);
      String message = worker.gone("ended", "").getMessage();
      assertFalse(worker.isAlive());
      assertTrue(
        message.contains("gave no sign of life for 1 s") && message.contains("spark.factorflow.timeout"),
        message
      );
    }
  }

  @Test
  void asksAndReportsRefusals() throws IOException {
    Launch launch = script(
      frame(HELLO) +
        "read line\n" +
        frame("{\"type\":\"lists\"}") +
        frame("{\"type\":\"answer\",\"id\":1}") +
        frame("{\"type\":\"answer\",\"id\":2,\"error\":{\"exitCode\":2,\"message\":\"no\",\"advice\":\"Do\"}}") +
        frame("{\"type\":\"error\",\"exitCode\":4,\"summary\":\"It does not fit.\"}") +
        frame("{\"type\":\"error\",\"exitCode\":5,\"message\":\"broken\"}")
    );
    try (WorkerProcess worker = start(launch)) {
      List<String> parts = new ArrayList<>();
      Frame answer = worker.ask(Frame.request("recommend"), new byte[0], part -> parts.add(part.type()));
      assertEquals(1, answer.number("id"));
      assertEquals(List.of("lists"), parts);
      String on = " (FactorFlow on " + FactorFlowException.hostName() + ", code ";
      assertEquals("no. Do" + on + "2)", assertThrows(FactorFlowException.Refused.class, worker::take).getMessage());
      assertEquals(
        "It does not fit. Raise memory" + on + "4)",
        assertThrows(FactorFlowException.Refused.class, worker::take).getMessage()
      );
      assertEquals("broken" + on + "5)", assertThrows(FactorFlowException.class, worker::take).getMessage());
    }
  }

  @Test
  void namesTheExecutorThatCannotRunAWorker() throws IOException {
    Launch launch = script("echo 'needs Node 22.12 or newer' >&2\nexit 2\n");
    FactorFlowException failure = assertThrows(FactorFlowException.class, () -> start(launch));
    assertEquals(java.util.Optional.of("driver"), failure.unfitExecutor());
    assertTrue(
      failure.getMessage().contains(FactorFlowException.hostName()) && failure.getMessage().contains("22.12"),
      failure.getMessage()
    );
  }
}

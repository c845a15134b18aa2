package io.github.factorflow.spark.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class FrameReaderTest {

  private static byte[] written() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    FrameWriter writer = new FrameWriter(out);
    writer.frame(
      JsonNodeFactory.instance.objectNode().put("type", "factors").put("side", "users"),
      new byte[] { 1, 2, 3 }
    );
    writer.frame(JsonNodeFactory.instance.objectNode().put("type", "done"));
    return out.toByteArray();
  }

  private static FrameReader reader(byte[] bytes) {
    return new FrameReader(new ByteArrayInputStream(bytes));
  }

  @Test
  void readsFramesAsTheyWereWritten() throws IOException {
    FrameReader reader = reader(written());
    Frame factors = reader.next();
    assertEquals("factors", factors.type());
    assertEquals("users", factors.text("side"));
    assertArrayEquals(new byte[] { 1, 2, 3 }, factors.payload());
    assertEquals("done", reader.next().type());
    assertNull(reader.next());
  }

  @Test
  void refusesAnEndInsideAFrame() throws IOException {
    byte[] whole = written();
    int second = whole.length - 8 - "{\"type\":\"done\"}".length();
    for (int length = 1; length < whole.length; length++) {
      if (length == second) continue;
      FrameReader reader = reader(Arrays.copyOf(whole, length));
      assertThrows(
        EOFException.class,
        () -> {
          while (reader.next() != null) continue;
        },
        "cut to " + length + " bytes"
      );
    }
  }

  @Test
  void refusesOutputOfOtherPrograms() {
    IOException failure = assertThrows(IOException.class, () ->
      reader("Usage: something else\n".getBytes(StandardCharsets.UTF_8)).next()
    );
    assertTrue(failure.getMessage().contains("is no frame"), failure.getMessage());
    assertThrows(IOException.class, () -> reader(new byte[] { 2, 0, 0, 0, 0, 0, 0, 0, '{', '}' }).next());
    assertThrows(IOException.class, () -> reader(new byte[8]).next());
  }
}

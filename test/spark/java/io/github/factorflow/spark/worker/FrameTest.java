package io.github.factorflow.spark.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class FrameTest {

  private static byte[] written() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    new Frame(Frame.request("factors").put("side", "users"), new byte[] { 1, 2, 3 }).write(out);
    new Frame(Frame.request("done"), new byte[0]).write(out);
    return out.toByteArray();
  }

  @Test
  void readsFramesAsTheyWereWritten() throws IOException {
    InputStream in = new ByteArrayInputStream(written());
    Frame factors = Frame.read(in);
    assertEquals("factors", factors.type());
    assertEquals("users", factors.text("side"));
    assertArrayEquals(new byte[] { 1, 2, 3 }, factors.payload());
    assertEquals("done", Frame.read(in).type());
    assertNull(Frame.read(in));
  }

  @Test
  void refusesAnEndInsideAFrame() throws IOException {
    byte[] whole = written();
    int second = whole.length - 8 - "{\"type\":\"done\"}".length();
    for (int length = 1; length < whole.length; length++) {
      if (length == second) continue;
      InputStream in = new ByteArrayInputStream(whole, 0, length);
      assertThrows(
        EOFException.class,
        () -> {
          while (Frame.read(in) != null) continue;
        },
        "cut to " + length + " bytes"
      );
    }
  }

  private static Frame read(byte[] bytes) throws IOException {
    return Frame.read(new ByteArrayInputStream(bytes));
  }

  @Test
  void refusesOutputOfOtherPrograms() {
    IOException failure = assertThrows(IOException.class, () ->
      read("Usage: something else\n".getBytes(StandardCharsets.UTF_8))
    );
    assertTrue(failure.getMessage().contains("is no frame"), failure.getMessage());
    assertThrows(IOException.class, () -> read(new byte[] { 2, 0, 0, 0, 0, 0, 0, 0, '{', '}' }));
    assertThrows(IOException.class, () -> read(new byte[8]));
  }
}

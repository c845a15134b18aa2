package io.github.factorflow.spark.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.factorflow.spark.rows.ExchangePlan.HostBytes;
import io.github.factorflow.spark.rows.ExchangePlan.Traffic;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

class ExchangePlanTest {
  private static final long MIB = 1 << 20;

  private static SolvedBlock block(int block, long rows, String answer) throws IOException {
    return SolvedBlock.loaded(block, new Sums(rows, 100, 1), BlockNeeds.of(new ObjectMapper().readTree(answer)));
  }

  private static ExchangePlan plan() throws IOException {
    List<SolvedBlock> users = List.of(
        block(0, 600_000,
            "{\"sends\":[600000,200000],\"bytes\":{\"kept\":1000,\"loading\":300,\"solving\":50,\"process\":7}}"),
        block(1, 400_000,
            "{\"sends\":[100000,300000],\"bytes\":{\"kept\":2000,\"loading\":10,\"solving\":60,\"process\":7}}"));
    List<SolvedBlock> items = List.of(block(0, 30,
        "{\"sends\":[20,10],\"bytes\":{\"kept\":100,\"loading\":20,\"solving\":70,\"process\":7}}"),
        SolvedBlock.empty(1));
    return ExchangePlan.of(users, items, 62);
  }

  @Test
  void sumsTheRowsThatEachHostNeeds() throws IOException {
    ExchangePlan plan = plan();
    assertArrayEquals(new long[] {700_000, 500_000}, plan.users().needed());
    assertEquals(1_000_000, plan.users().rows());
    assertEquals(256_000_000, plan.users().bytes());
    assertEquals(600_000 * 256L, plan.users().neededBytes());
    assertArrayEquals(new long[] {20, 10}, plan.items().needed());
  }

  @Test
  void boundsTheMemoryOfLoadingAndSolving() throws IOException {
    ExchangePlan plan = plan();
    // users of host 0 are loaded before its items
    assertEquals(List.of(new HostBytes(7, 1100, 200), new HostBytes(7, 2000, 60)), plan.hosts());
    assertEquals(new HostBytes(7, 2000, 60), plan.largest());
  }

  @Test
  void givesReasons() throws IOException {
    String text = plan().text();
    assertTrue(text.startsWith("users: 600 k of 1.0 M rows needed by the average host, 146 MiB instead of 244 MiB; items: 15 of 30 rows"), text);
    assertTrue(text.contains("memory of the largest worker: 0.0 MiB for ratings and rows"), text);
  }

  @Test
  void prefersBroadcastsOfSmallSides() {
    assertTrue(Exchange.isSmall(side(16 * MIB, 16 * MIB), 100 * MIB));
    assertFalse(Exchange.isSmall(side(17 * MIB, 17 * MIB), 100 * MIB));
    // if hosts need only a part, a shuffle is faster from a smaller side on
    assertFalse(Exchange.isSmall(side(12 * MIB, 2 * MIB), 100 * MIB));
    assertTrue(Exchange.isSmall(side(10 * MIB, 2 * MIB), 100 * MIB));
    assertFalse(Exchange.isSmall(side(16 * MIB, 16 * MIB), 15 * MIB));
  }

  private static Traffic side(long bytes, long needed) {
    return new Traffic(Side.USERS, bytes / 256, new long[] {needed / 256}, 256);
  }
}

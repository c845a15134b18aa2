package io.github.factorflow.spark.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.rows.ExchangePlan.HostBytes;
import io.github.factorflow.spark.rows.ExchangePlan.Traffic;
import io.github.factorflow.spark.rows.RowTask.Side;
import io.github.factorflow.spark.rows.SolvedBlock.Facts;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class ExchangePlanTest {

  private static final long MIB = 1 << 20;
  private static final ExchangePlan.Row SINGLE = new ExchangePlan.Row(62, false);

  private static Facts block(String answer) {
    return SolvedBlock.loaded(0, answer).facts();
  }

  private static final String BYTES = ",\"equations\":{\"kept\":5,\"forming\":80,\"summing\":9}}}";

  private static ExchangePlan plan() {
    return ExchangePlan.of(users(), items(), SINGLE, Set.of());
  }

  private static List<Facts> users() {
    return List.of(
      block(
        "{\"rows\":600000,\"columns\":30,\"sends\":[600000,500000],\"bytes\":{\"kept\":1000,\"loading\":300,\"solving\":50,\"process\":7" +
          BYTES
      ),
      block(
        "{\"rows\":400000,\"columns\":20,\"sends\":[300000,300000],\"bytes\":{\"kept\":2000,\"loading\":10,\"solving\":60,\"process\":7" +
          BYTES
      )
    );
  }

  private static List<Facts> items() {
    return List.of(
      block(
        "{\"rows\":30,\"columns\":1000000,\"sends\":[20,10],\"bytes\":{\"kept\":100,\"loading\":20,\"solving\":70,\"process\":7" +
          BYTES
      ),
      SolvedBlock.empty(1).facts()
    );
  }

  private static ExchangeChoice choice(Settings.Exchange setting, long memory, boolean everywhere) {
    return ExchangeChoice.of(
      setting,
      users(),
      items(),
      SINGLE,
      new ExchangeChoice.Limits(100 * MIB, bytes -> bytes <= memory, everywhere)
    );
  }

  @Test
  void sumsTheRowsThatOtherHostsSend() {
    ExchangePlan plan = plan();
    assertArrayEquals(new long[] { 300_000, 500_000 }, plan.users().needed());
    assertEquals(1_000_000, plan.users().rows());
    assertEquals(256_000_000, plan.users().bytes());
    assertEquals(400_000 * 256L, plan.users().neededBytes());
    assertArrayEquals(new long[] { 0, 10 }, plan.items().needed());
  }

  @Test
  void countsTheBytesOfHalfPrecision() {
    ExchangePlan plan = ExchangePlan.of(users(), items(), new ExchangePlan.Row(62, true), Set.of());
    assertEquals(128_000_000, plan.users().bytes());
    assertEquals(400_000 * 128L, plan.users().neededBytes());
    // equations are not rounded
    assertEquals(plan().users().formedBytes(), plan.users().formedBytes());
  }

  @Test
  void boundsTheMemoryOfLoadingAndSolving() {
    ExchangePlan plan = plan();
    // users of host 0 are loaded before its items
    assertEquals(List.of(new HostBytes(7, 1100, 200), new HostBytes(7, 2000, 60)), plan.hosts());
    assertEquals(new HostBytes(7, 2000, 60), plan.largest());
  }

  @Test
  void givesReasons() {
    String text = plan().text();
    assertTrue(
      text.startsWith(
        "users: 400 k of 1.0 M rows sent to the average host, 98 MiB instead of 244 MiB, or 0.2 MiB of " +
          "equations; items: 5 of 30 rows"
      ),
      text
    );
    assertTrue(text.contains("memory of the largest worker: 0.0 MiB for ratings and rows"), text);
  }

  @Test
  void prefersBroadcastsOfSmallSides() {
    assertTrue(isSmall(16 * MIB, 16 * MIB, 100 * MIB));
    assertFalse(isSmall(17 * MIB, 17 * MIB, 100 * MIB));
    // if hosts need only a part, a shuffle is faster from a smaller side on
    assertFalse(isSmall(12 * MIB, 2 * MIB, 100 * MIB));
    assertTrue(isSmall(10 * MIB, 2 * MIB, 100 * MIB));
    assertFalse(isSmall(16 * MIB, 16 * MIB, 15 * MIB));
  }

  private static boolean isSmall(long bytes, long needed, long most) {
    Traffic side = new Traffic(Side.USERS, bytes / 256, new long[] { needed / 256 }, SINGLE, 0);
    return ExchangeChoice.isSmall(new ExchangePlan(side, side, List.of(), Set.of()), Side.USERS, most);
  }

  @Test
  void exchangesEquationsOfFewItemsOfManyUsers() {
    ExchangeChoice choice = choice(Settings.Exchange.AUTO, Long.MAX_VALUE, true);
    assertFalse(choice.broadcast());
    assertEquals(Set.of(Side.USERS), choice.plan().formed());
    // 25 rows of 62 * 63 / 2 + 62 + 1 numbers, with ids
    assertEquals(25 * (4 * 2016 + 8), choice.plan().users().formedBytes());
    assertEquals(
      "Exchange by shuffle, items from sums of equations, 0.2 MiB a host instead of 98 MiB of rows of users: " +
        "less time than rows",
      choice.text()
    );
    assertEquals(List.of(new HostBytes(7, 1105, 195), new HostBytes(7, 2005, 80)), choice.plan().hosts());
  }

  @Test
  void exchangesRowsWhereEquationsCannotBeFormedOrDoNotFit() {
    assertEquals(Set.of(), choice(Settings.Exchange.AUTO, Long.MAX_VALUE, false).plan().formed());
    ExchangeChoice tight = choice(Settings.Exchange.AUTO, 2067, true);
    assertEquals(Set.of(), tight.plan().formed());
    assertTrue(tight.text().contains("equations do not fit a worker's memory"), tight.text());
    String noEquations =
      "{\"columns\":30,\"sends\":[1],\"bytes\":{\"kept\":1,\"loading\":1,\"solving\":1,\"process\":1}}";
    List<Facts> onGpu = List.of(block(noEquations));
    assertThrows(FactorFlowException.class, () ->
      ExchangeChoice.of(
        Settings.Exchange.EQUATIONS,
        onGpu,
        onGpu,
        SINGLE,
        new ExchangeChoice.Limits(MIB, bytes -> true, true)
      )
    );
  }

  @Test
  void followsTheSetting() {
    assertTrue(choice(Settings.Exchange.BROADCAST, Long.MAX_VALUE, true).broadcast());
    assertEquals(Set.of(), choice(Settings.Exchange.SHUFFLE, Long.MAX_VALUE, true).plan().formed());
    assertEquals(
      Set.of(Side.USERS),
      choice(Settings.Exchange.EQUATIONS, Long.MAX_VALUE, true).plan().formed()
    );
    assertEquals(
      "Exchange by shuffle: as set",
      choice(Settings.Exchange.SHUFFLE, Long.MAX_VALUE, true).text()
    );
  }
}

package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import java.io.Serializable;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import scala.Tuple2;

/**
 * The work on each block of a side: load, start, solve, or send. It is pure: the block's ratings, the fixed
 * side and the block's previous factors determine the result on every executor. If a worker lacks one of
 * them, it says so and receives it.
 *
 * @param previousVersion null if the rows have not been solved before
 * @param last a task of the last iteration, which solves the model's rows
 */
record RowTask(
  RowSession session,
  Side side,
  Work work,
  Totals totals,
  int version,
  Integer fixedVersion,
  Integer previousVersion,
  byte[] fixedGram,
  boolean last
) implements Serializable {
  enum Side {
    USERS("users"),
    ITEMS("items");

    final String label;

    Side(String label) {
      this.label = label;
    }

    Side other() {
      return this == USERS ? ITEMS : USERS;
    }
  }

  enum Work {
    LOAD,
    START,
    SOLVE,
    SOLVE_SUMMED,
    SEND,
    SEND_EQUATIONS
  }

  /** The number of all ratings, and the sum of their squares. */
  record Totals(long ratings, double squares) implements Serializable {}

  /**
   * Data for a worker that lacks them.
   *
   * @param ratings of the block
   * @param fixed streams of the other side's factors, without the block of this number
   * @param local streams of the other side's block of this number, which this worker may not have solved.
   *     With equations all streams are in {@code fixed}
   * @param previous streams of the block's own former factors
   */
  record Given(
    Iterator<RatingBatch> ratings,
    Supplier<Iterator<byte[]>> fixed,
    Supplier<List<byte[]>> local,
    Supplier<List<byte[]>> previous
  ) {}

  private static final byte[] nothing = new byte[0];
  /** A block that needs a larger share of another block's rows is sent all of them, as they were solved. */
  private static final double MOST = 0.75;

  static RowTask load(RowSession session, Side side) {
    return new RowTask(session, side, Work.LOAD, new Totals(0, 0), 0, null, null, nothing, false);
  }

  static RowTask start(RowSession session, Totals totals) {
    return new RowTask(session, Side.USERS, Work.START, totals, 0, null, null, nothing, false);
  }

  /** {@code previous} is null if the rows have not been solved before. */
  static RowTask solve(
    RowSession session,
    Side side,
    Totals totals,
    SolvedSide fixed,
    SolvedSide previous,
    boolean last
  ) {
    int by = fixed.version();
    Integer former = previous == null ? null : previous.version();
    return new RowTask(session, side, Work.SOLVE, totals, by + 1, by, former, fixed.gram(), last);
  }

  /** The same solve from sums of equations. */
  RowTask fromEquations() {
    return new RowTask(
      session, side, Work.SOLVE_SUMMED, totals, version, fixedVersion, previousVersion, fixedGram, last
    );
  }

  /** Sends rows of the fixed side, or equations formed from them, to the blocks that this task solves. */
  RowTask sendFixed() {
    Work send = work == Work.SOLVE_SUMMED ? Work.SEND_EQUATIONS : Work.SEND;
    return new RowTask(session, side.other(), send, totals, fixedVersion, null, fixedVersion, nothing, last);
  }

  boolean sendsEquations() {
    return work == Work.SEND_EQUATIONS;
  }

  /** Each of {@code given} is read only where the worker lacks it. */
  SolvedBlock run(int block, Given given) {
    if (!given.ratings.hasNext()) return SolvedBlock.empty(block);
    RowWorker worker = RowWorker.of(session);
    try {
      return worker.use(TaskContext.get(), session.progress(), () -> {
        if (work == Work.LOAD) return SolvedBlock.loaded(block, load(worker, block, given));
        RowWorker.Answer answer = answer(worker, block, request(block), given);
        return SolvedBlock.solved(block, answer.factors(), gram(worker, block), loss(worker, block, answer));
      });
    } catch (FactorFlowException.Refused refused) {
      return SolvedBlock.refused(block, refused.getMessage());
    }
  }

  /**
   * The rows of a solved block that each other block of the other side needs, or its share of their
   * equations. Each stream's key is from * hosts + to: the numbers of this block, and of the block that needs
   * the stream. The worker is asked for one block after the other, as the streams are read; a block that
   * needs most rows is sent the streams {@code solved}. The block of the same number takes its rows from the
   * worker or from {@code solved}.
   *
   * @param solved streams of the block's factors
   */
  Iterator<Tuple2<Integer, byte[]>> send(
    int block,
    Iterator<RatingBatch> ratings,
    Supplier<List<byte[]>> solved
  ) {
    if (!ratings.hasNext()) return Collections.emptyIterator();
    RowWorker worker = RowWorker.of(session);
    Given held = new Given(ratings, Collections::emptyIterator, List::of, solved);
    // In the last iteration solved streams may be the model's, in float32: the worker rounds the rows that it sends.
    boolean whole = !last || !session.half();
    String type = sendsEquations() ? "equations" : "send";
    return IntStream.range(0, session.hosts())
      .filter(to -> to != block || sendsEquations())
      .boxed()
      .flatMap(to -> {
        ObjectNode request = node(type, block).put("version", version).put("to", to).put("whole", whole);
        RowWorker.Answer answer = worker.use(TaskContext.get(), session.progress(), () ->
          answer(worker, block, request, held)
        );
        boolean all = answer.frame().header().path("whole").asBoolean();
        return (all ? solved.get() : answer.factors())
          .stream()
          .map(stream -> new Tuple2<>(block * session.hosts() + to, stream));
      })
      .iterator();
  }

  /** The answer to a request, after the worker has been given the data that it lacks. */
  private RowWorker.Answer answer(RowWorker worker, int block, ObjectNode request, Given given) {
    RowWorker.Answer answer = worker.ask(request, fixedGram);
    Set<String> lacked = new HashSet<>();
    for (String missing = answer.missing(); !missing.isEmpty(); missing = answer.missing()) {
      if (!lacked.add(missing)) throw new FactorFlowException(
        "FactorFlow's worker lacks " + missing + ", which it has been given"
      );
      switch (missing) {
        case "block" -> load(worker, block, given);
        case "fixed" -> fix(worker, block, given);
        case "equations" -> give(worker, rows("add", block, fixedVersion), given.fixed.get());
        case "previous" -> give(
          worker,
          rows("previous", block, previousVersion),
          given.previous.get().iterator()
        );
        default -> throw new FactorFlowException(
          "FactorFlow's worker lacks " + missing + ", which the plugin does not know"
        );
      }
      answer = worker.ask(request, fixedGram);
    }
    return answer;
  }

  private static void give(RowWorker worker, ObjectNode request, Iterator<byte[]> streams) {
    streams.forEachRemaining(stream -> worker.ask(request, stream));
  }

  /** Gives a worker the fixed side; it uses the rows of its own block of the same number if it has them. */
  private void fix(RowWorker worker, int block, Given given) {
    ObjectNode request = rows("fixed", block, fixedVersion);
    give(worker, request, given.fixed.get());
    String own = side.other().label + "-" + block;
    ObjectNode take = rows("take", block, fixedVersion).put("from", own).put("to", block);
    if (!worker.ask(take, nothing).missing().isEmpty()) give(worker, request, given.local.get().iterator());
  }

  /** Returns the worker's facts about the block. */
  private String load(RowWorker worker, int block, Given given) {
    worker.ask(node("release", block), nothing);
    long rows = 0;
    while (given.ratings.hasNext()) {
      RatingBatch batch = given.ratings.next();
      worker.ask(node("load", block).put("side", side.label), batch.stream());
      rows += batch.rows;
    }
    ObjectNode build = node("build", block).put("rows", rows).put("blocks", session.hosts());
    String facts = worker.ask(build.put("most", MOST), nothing).frame().header().toString();
    if (side == Side.USERS && work == Work.LOAD) session.progress().ratings().add(rows);
    return facts;
  }

  private byte[] gram(RowWorker worker, int block) {
    return session.parameters().implicitPrefs()
      ? worker.ask(node("gram", block).put("version", version), nothing).frame().payload()
      : null;
  }

  /**
   * The block's part of the loss. The last iteration's errors are measured by a pass over the ratings, as on
   * one host, and others come from the solve, except where it does not compute them.
   */
  private String loss(RowWorker worker, int block, RowWorker.Answer solved) {
    if (work == Work.START) return "{}";
    session.progress().kernels().add(solved.frame().text("kernel"));
    ObjectNode request = node("loss", block).put("version", version).put("fixed", fixedVersion);
    request.put("solved", !last || work == Work.SOLVE_SUMMED);
    return worker.ask(request, nothing).frame().header().toString();
  }

  private ObjectNode request(int block) {
    ObjectNode request = rows(work == Work.START ? "start" : "solve", block, version);
    if (work == Work.START) return request;
    return request
      .put("fixed", fixedVersion)
      .put("previous", previousVersion)
      .put("equations", work == Work.SOLVE_SUMMED)
      .put("exact", last);
  }

  private ObjectNode rows(String type, int block, int version) {
    ObjectNode request = node(type, block).put("version", version);
    return request.put("squares", totals.squares).put("ratings", totals.ratings);
  }

  private ObjectNode node(String type, int block) {
    return Frame.request(type).put("block", side.label + "-" + block);
  }
}

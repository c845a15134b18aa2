package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.data.RatingStream;
import io.github.factorflow.spark.run.Refusal;
import io.github.factorflow.spark.worker.FactorFlowException;
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
 */
final class RowTask implements Serializable {

  enum Work {
    LOAD,
    START,
    SOLVE,
    SOLVE_SUMMED,
    SEND,
    SEND_EQUATIONS
  }

  private static final long serialVersionUID = 1;
  private static final byte[] nothing = new byte[0];
  /** A block that needs a larger share of another block's rows is sent all of them, as they were solved. */
  private static final double MOST = 0.75;
  private final RowSession session;
  private final Side side;
  private final Work work;
  private final Sums all;
  private final int version;
  private final Integer fixedVersion;
  private final Integer previousVersion;
  private final byte[] fixedGram;
  private final boolean last;

  private RowTask(
    RowSession session,
    Side side,
    Work work,
    Sums all,
    int version,
    Integer fixedVersion,
    Integer previousVersion,
    byte[] fixedGram,
    boolean last
  ) {
    this.session = session;
    this.side = side;
    this.work = work;
    this.all = all;
    this.version = version;
    this.fixedVersion = fixedVersion;
    this.previousVersion = previousVersion;
    this.fixedGram = fixedGram;
    this.last = last;
  }

  static RowTask load(RowSession session, Side side) {
    return new RowTask(session, side, Work.LOAD, Sums.NONE, 0, null, null, nothing, false);
  }

  static RowTask start(RowSession session, Sums all) {
    return new RowTask(session, Side.USERS, Work.START, all, 0, null, null, nothing, false);
  }

  /** The same solve from sums of equations. */
  RowTask fromEquations() {
    return new RowTask(
      session,
      side,
      Work.SOLVE_SUMMED,
      all,
      version,
      fixedVersion,
      previousVersion,
      fixedGram,
      last
    );
  }

  /** Sends rows of the fixed side, or equations formed from them, to the blocks that this task solves. */
  RowTask sendFixed() {
    Work sending = work == Work.SOLVE_SUMMED ? Work.SEND_EQUATIONS : Work.SEND;
    return new RowTask(session, side.other(), sending, all, fixedVersion, null, fixedVersion, nothing, last);
  }

  boolean sendsEquations() {
    return work == Work.SEND_EQUATIONS;
  }

  Side side() {
    return side;
  }

  /**
   * {@code previousVersion} is null if the rows have not been solved before. {@code last}: a task of the last
   * iteration, which solves the model's rows.
   */
  static RowTask solve(
    RowSession session,
    Side side,
    Sums all,
    int version,
    int fixedVersion,
    Integer previousVersion,
    byte[] fixedGram,
    boolean last
  ) {
    return new RowTask(
      session,
      side,
      Work.SOLVE,
      all,
      version,
      fixedVersion,
      previousVersion,
      fixedGram,
      last
    );
  }

  /**
   * @param ratings of the block; read only where the worker does not hold them
   * @param fixed streams of the other side's factors, without the block of this number; read only where the
   *     worker has another version
   * @param local streams of the other side's block of this number; read only where this worker has not solved
   *     it. With equations all streams are in {@code fixed}
   * @param previous streams of the block's own former factors; read only where the worker has not solved them
   */
  SolvedBlock run(
    int block,
    Iterator<RatingBatch> ratings,
    Supplier<Iterator<byte[]>> fixed,
    Supplier<List<byte[]>> local,
    Supplier<List<byte[]>> previous
  ) {
    if (!ratings.hasNext()) return SolvedBlock.empty(block);
    RowWorker worker = RowWorkers.of(session);
    try {
      return worker.use(TaskContext.get(), session.progress(), () -> {
        if (work == Work.LOAD) return load(worker, block, ratings);
        GivenFactors given = new GivenFactors(fixed, local, previous);
        RowWorker.Answer answer = answer(worker, block, request(block), ratings, given);
        return SolvedBlock.solved(block, answer.factors(), gram(worker, block), loss(worker, block, answer));
      });
    } catch (Refusal.Refused refused) {
      return SolvedBlock.refused(block, refused.getMessage());
    }
  }

  /**
   * The rows of a solved block that each other block of the other side needs, or its share of their equations,
   * with their keys (see Sending). The worker is asked for one block after the other, as the streams are read;
   * a block that needs most rows is sent the streams {@code solved}. The block of the same number takes its
   * rows from the worker or from {@code solved}.
   *
   * @param solved streams of the block's factors
   */
  Iterator<Tuple2<Integer, byte[]>> send(
    int block,
    Iterator<RatingBatch> ratings,
    Supplier<List<byte[]>> solved
  ) {
    if (!ratings.hasNext()) return Collections.emptyIterator();
    RowWorker worker = RowWorkers.of(session);
    GivenFactors held = new GivenFactors(Collections::emptyIterator, List::of, solved);
    // In the last iteration solved streams may be the model's, in float32: the worker rounds the rows that it sends.
    boolean whole = !last || !session.half();
    String type = sendsEquations() ? "equations" : "send";
    return IntStream.range(0, session.hosts())
      .filter(to -> to != block || sendsEquations())
      .boxed()
      .flatMap(to -> {
        ObjectNode request = node(type, block).put("version", version).put("to", to).put("whole", whole);
        RowWorker.Answer answer = worker.use(TaskContext.get(), session.progress(), () ->
          answer(worker, block, request, ratings, held)
        );
        boolean all = answer.frame().header().path("whole").asBoolean();
        return (all ? solved.get() : answer.factors())
          .stream()
          .map(stream -> new Tuple2<>(block * session.hosts() + to, stream));
      })
      .iterator();
  }

  /** The answer to a request, after the worker has been given the data that it lacks. */
  private RowWorker.Answer answer(
    RowWorker worker,
    int block,
    ObjectNode request,
    Iterator<RatingBatch> ratings,
    GivenFactors given
  ) {
    RowWorker.Answer answer = worker.ask(request, fixedGram);
    Set<String> lacked = new HashSet<>();
    for (String missing = answer.missing(); !missing.isEmpty(); missing = answer.missing()) {
      if (!lacked.add(missing)) throw new FactorFlowException(
        "FactorFlow's worker lacks " + missing + ", which it has been given"
      );
      switch (missing) {
        case "block" -> load(worker, block, ratings);
        case "fixed" -> given.fix(worker, rows("fixed", block, fixedVersion), take(block));
        case "equations" -> given
          .fixed()
          .get()
          .forEachRemaining(stream -> worker.ask(rows("add", block, fixedVersion), stream));
        case "previous" -> given
          .previous()
          .get()
          .forEach(stream -> worker.ask(rows("previous", block, previousVersion), stream));
        default -> throw new FactorFlowException(
          "FactorFlow's worker lacks " + missing + ", which the plugin does not know"
        );
      }
      answer = worker.ask(request, fixedGram);
    }
    return answer;
  }

  private ObjectNode take(int block) {
    return rows("take", block, fixedVersion).put("from", side.other().label + "-" + block).put("to", block);
  }

  private SolvedBlock load(RowWorker worker, int block, Iterator<RatingBatch> ratings) {
    worker.ask(node("release", block), nothing);
    long rows = 0;
    while (ratings.hasNext()) {
      RatingBatch batch = ratings.next();
      worker.ask(node("load", block).put("side", side.label), RatingStream.whole(batch));
      rows += batch.rows;
    }
    var built = worker
      .ask(node("build", block).put("rows", rows).put("blocks", session.hosts()).put("most", MOST), nothing)
      .frame();
    if (side == Side.USERS && work == Work.LOAD) session.progress().ratings(rows);
    Sums sums = new Sums(
      built.number("rows"),
      built.number("ratings"),
      built.header().path("squares").asDouble()
    );
    return SolvedBlock.loaded(block, sums, BlockNeeds.of(built.header()));
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
  private BlockLoss loss(RowWorker worker, int block, RowWorker.Answer solved) {
    if (work == Work.START) return BlockLoss.NONE;
    session.progress().solvedBy(solved.frame().text("kernel"));
    ObjectNode request = node("loss", block).put("version", version).put("fixed", fixedVersion);
    request.put("solved", !last || work == Work.SOLVE_SUMMED);
    return BlockLoss.of(worker.ask(request, nothing).frame().header());
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
    return node(type, block).put("version", version).put("squares", all.squares).put("ratings", all.ratings);
  }

  private ObjectNode node(String type, int block) {
    return JsonNodeFactory.instance
      .objectNode()
      .put("type", type)
      .put("block", side.label + "-" + block);
  }
}

package io.github.factorflow.spark.run;

import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.WorkerProcess;

/** An error frame of a worker as one message: the reason and advice first, then the code of FactorFlow's command and the host. */
final class Refusal {
  private static final int DOES_NOT_FIT = 4;

  private Refusal() {}

  static String of(Frame error, Placement placement) {
    long code = error.number("exitCode");
    String advice = code == DOES_NOT_FIT ? placement.moreMemory() : error.text("advice");
    String message = error.text(error.header().hasNonNull("summary") ? "summary" : "message");
    String sentence = message.endsWith(".") || advice.isEmpty() ? message : message + ".";
    return (advice.isEmpty() ? sentence : sentence + " " + advice) + " (FactorFlow on " + WorkerProcess.host() + ", code " + code + ")";
  }
}

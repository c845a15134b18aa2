package io.github.factorflow.spark.worker;

import java.net.InetAddress;
import java.net.UnknownHostException;

/** The name of the host of this JVM, for messages. */
public final class HostName {

  private HostName() {}

  public static String get() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException unknown) {
      return "this host";
    }
  }
}

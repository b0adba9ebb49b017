import threading
import time

import pytest

from evergraph.fifo import FifoLock


def test_first_come_first_served() -> None:
    lock, served = FifoLock(), list[int]()

    def wait_and_note(number: int) -> None:
        with lock:
            served.append(number)

    threads = [threading.Thread(target=wait_and_note, args=[number]) for number in range(20)]
    with lock:
        for number, thread in enumerate(threads):
            thread.start()
            while len(lock._turns) <= number:  # until it stands in the queue
                time.sleep(0.0001)
    for thread in threads:
        thread.join()
    assert served == list(range(20))


def test_one_at_a_time() -> None:
    lock, inside, most = FifoLock(), list[int](), list[int]()

    def work(number: int) -> None:
        for _ in range(50):
            with lock:
                inside.append(number)
                time.sleep(0)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 400


def test_an_error_inside_lets_the_next_one_in() -> None:
    lock = FifoLock()
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    with lock:
        pass

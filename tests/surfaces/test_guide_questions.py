"""Forty questions that people put to the guide, in Portuguese and in English: each is answered by the first three."""

from collections.abc import Iterator

import httpx2
import pytest

from ..support.live import NO_TLS, Live
from .test_guide import results

pytestmark = pytest.mark.check

ASKED = {
    "reembolso": "/guide/payments#fail-expire-or-refund-an-order",
    "como faço um estorno": "/guide/payments#fail-expire-or-refund-an-order",
    "cobrança recusada": "/guide/payments#make-a-card-or-a-payment-fail",
    "cartão recusado": "/guide/payments#make-a-card-or-a-payment-fail",
    "contestação": "/guide/payments#dispute-a-payment",
    "chargeback": "/guide/payments#dispute-a-payment",
    "idempotência": "/guide/api#repeat-a-request-safely-idempotency-key",
    "resend": "/guide/webhooks#redeliver",
    "reenviar webhook": "/guide/webhooks#redeliver",
    "ngrok": "/guide/webhooks#forward-events-to-localhost",
    "túnel para localhost": "/guide/webhooks#forward-events-to-localhost",
    "signing secret": "/guide/webhooks#verify-a-signature",
    "verificar assinatura": "/guide/webhooks#verify-a-signature",
    "rotate the webhook secret": "/guide/webhooks#rotate-the-signing-key",
    "time zone": "/guide/console#read-times-in-your-time-zone",
    "fuso horário": "/guide/console#read-times-in-your-time-zone",
    "avançar o relógio": "/guide/time#move-the-clock",
    "adiantar um mês": "/guide/payments#see-next-months-renewal-today",
    "renovação": "/guide/payments#see-next-months-renewal-today",
    "desfazer": "/guide/console#undo",
    "voltar no tempo": "/guide/time#go-back",
    "resetar": "/guide/time#reset-between-tests",
    "reset": "/guide/time#reset-between-tests",
    "cliente inadimplente": "/guide/time#add-somebody-in-a-state",
    "past due customer": "/guide/time#add-somebody-in-a-state",
    "simular erro 503": "/guide/faults#one-request",
    "servidor lento": "/guide/faults#all-requests-of-a-kind",
    "pagar com pix": "/guide/payments#pay-a-pix-order",
    "autenticação": "/guide/api#get-a-token",
    "login": "/guide/api#get-a-token",
    "chave de api": "/guide/api#create-an-api-key-with-fewer-scopes",
    "CORS": "/guide/api#call-it-from-a-browser-cors",
    "paginação": "/guide/api#read-a-list-page-sort-filter",
    "typed client": "/guide/typescript#generate-a-client",
    "sdk typescript": "/guide/typescript#generate-a-client",
    "docker compose": "/guide/teams#docker",
    "um servidor para a equipe": "/guide/teams#one-server-for-a-team",
    "backup": "/guide/stores#back-up",
    "por que a requisição foi recusada": "/guide/journal#why-was-a-request-refused",
    "comparar com o backend real": "/guide/verify",
}


@pytest.fixture(scope="module")
def reader(live: Live) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=live.url, verify=NO_TLS, timeout=30) as client:
        yield client


def test_forty_questions_are_answered_by_the_first_three(reader: httpx2.Client) -> None:
    assert 40 == len(ASKED)
    found = {question: results(reader, question)[:3] for question in ASKED}
    assert {} == {question: three for question, three in found.items() if ASKED[question] not in three}

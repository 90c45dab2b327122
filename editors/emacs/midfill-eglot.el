;;; midfill-eglot.el --- midfill as the server of eglot -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Where midfill is the server that eglot manages a buffer with:
;;
;;     (with-eval-after-load 'eglot
;;       (midfill-eglot-setup '(python-mode python-ts-mode)))
;;
;; For eglot 1.9 and newer.  Where newer versions have a
;; public function that is used, the private one only in older versions.

;;; Code:

(require 'eglot nil t) ; Emacs 28 has it as a package
(require 'midfill-connection)
(require 'midfill-server)

(defvar eglot-server-programs)
(declare-function eglot-current-server "eglot" ())
(declare-function eglot-managed-p "eglot" ())
(declare-function eglot-reconnect "eglot" (server &optional interactive))
(declare-function eglot--server-capable "eglot" (&rest features))
(declare-function eglot--TextDocumentIdentifier "eglot" ())
(declare-function eglot--signal-textDocument/didChange "eglot" ())

(defclass midfill-eglot-server (eglot-lsp-server) ()
  "The server, as eglot runs it.")

(defvar midfill-eglot--modes nil
  "Modes whose buffers are left to eglot.")

;;;###autoload
(defun midfill-eglot-setup (modes &optional command)
  "Make midfill the server of eglot for MODES, a list of major modes.
COMMAND is a list of strings, by default that of midfill's own connection."
  (setq midfill-eglot--modes (append modes midfill-eglot--modes))
  (push (cons modes (lambda (&rest _)
                      (cons 'midfill-eglot-server
                            (or command (midfill-server-find-command)
                                (user-error "Not installed; %s" (midfill-server-installation))))))
        eglot-server-programs))

(defun midfill-eglot--capable (&rest features)
  "What the server of eglot for the current buffer offers of FEATURES."
  (apply (if (fboundp 'eglot-server-capable) #'eglot-server-capable #'eglot--server-capable) features))

(defun midfill-eglot--midfill-p ()
  "Whether the server of eglot for the current buffer is midfill."
  (midfill-connection-offers-p
   (list :inlineCompletionProvider t
         :executeCommandProvider (list :commands (midfill-eglot--capable :executeCommandProvider :commands)))))

(defun midfill-eglot-connection ()
  "The server of eglot for the current buffer if it is midfill.
Give t if it is to be, or nil."
  (cond ((eglot-managed-p) (and (midfill-eglot--midfill-p) (eglot-current-server)))
        (midfill-eglot--modes (and (apply #'derived-mode-p midfill-eglot--modes) t))))

(add-hook 'midfill-connection-other-functions #'midfill-eglot-connection)

(cl-defmethod midfill-connection-sync ((_ eglot-lsp-server))
  "Send the changes of the current buffer, for which eglot would wait."
  (eglot--signal-textDocument/didChange)
  (list (plist-get (eglot--TextDocumentIdentifier) :uri)
        (or (midfill-eglot--capable :positionEncoding) "utf-16")))

(cl-defmethod midfill-server-restart ((server eglot-lsp-server))
  "Start SERVER anew."
  (eglot-reconnect server))

(cl-defmethod eglot-client-capabilities ((_server midfill-eglot-server))
  "Those of eglot, and that there are suggestions.
The server offers none for menus then."
  (let ((capabilities (copy-tree (cl-call-next-method))))
    (plist-put capabilities :textDocument
               (plist-put (plist-get capabilities :textDocument)
                          :inlineCompletion '(:dynamicRegistration :json-false)))))

(cl-defmethod eglot-initialization-options ((_server midfill-eglot-server))
  "The settings."
  (midfill-server-json-settings))

;; `eglot-workspace-configuration' is safe as a directory's variable.  Settings of midfill name
;; commands and keys, so they never come from there: they were sent at the start.
(cl-defmethod eglot-handle-request :around (_server (_method (eql 'workspace/configuration)) &key items
                                                    &allow-other-keys)
  "Give midfill no settings of a directory for ITEMS."
  (if (midfill-eglot--midfill-p)
      (make-vector (length items) nil)
    (cl-call-next-method)))

(cl-defmethod eglot-handle-notification :before (_server (_method (eql 'window/showMessage)) &key type message
                                                         &allow-other-keys)
  "Keep MESSAGE of TYPE, if it is one of midfill, for the mode line."
  (when (midfill-eglot--midfill-p)
    (midfill-server-warned type message)))

(provide 'midfill-eglot)
;;; midfill-eglot.el ends here
